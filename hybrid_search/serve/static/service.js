// Asks the service, with the token if it wants one.

const TOKEN = "hybrid-search-token";

export class ServiceError extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

export function useToken(token) {
  sessionStorage.setItem(TOKEN, token);
}

async function ask(path, options = {}) {
  const token = sessionStorage.getItem(TOKEN);
  const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServiceError(0, "The service does not answer: is it still running?");
  }
  const answer = await response.json();
  if (!response.ok) throw new ServiceError(response.status, answer.detail);
  return answer;
}

export function query(parameters, signal) {
  const headers = { "Content-Type": "application/json" };
  return ask("/v1/query", { method: "POST", headers, body: JSON.stringify(parameters), signal });
}

export function openDocument(id, parameters, signal) {
  return ask(`/v1/documents/${encodeURIComponent(id)}?${new URLSearchParams(parameters)}`, { signal });
}

export function listIndexes() {
  return ask("/v1/indexes");
}

export async function listJudgments() {
  return (await ask("/v1/judgments")).judgments;
}

export function judge(judgment) {
  const headers = { "Content-Type": "application/json" };
  return ask("/v1/judgments", { method: "POST", headers, body: JSON.stringify(judgment) });
}
