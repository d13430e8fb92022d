// Ranks passages again at another alpha, from both parts of their scores, and groups them by call.

export class Candidates {
  constructor() {
    this.passages = new Map();
  }

  add(hits) {
    for (const hit of hits) {
      const key = JSON.stringify([hit.id, hit.passage]);
      const earlier = this.passages.get(key);
      // a leg that was not asked, at alpha 0 or 1, gave no ranks
      if (!earlier || (hit.bm25_rank && hit.cosine_rank)) this.passages.set(key, hit);
    }
  }

  rank(alpha) {
    const scored = [...this.passages.values()].map((hit) => ({ hit, score: fuse(hit, alpha) }));
    scored.sort(compare);
    const calls = new Map();
    for (const item of scored) {
      const call = calls.get(item.hit.id);
      if (call) call.passages.push(item.hit);
      else calls.set(item.hit.id, { best: item.hit, score: item.score, passages: [item.hit] });
    }
    return [...calls.values()];
  }
}

export function fuse(hit, alpha) {
  return alpha * hit.explanation.spans + (1 - alpha) * hit.explanation.bm25;
}

function compare(first, second) {
  return (
    second.score - first.score ||
    second.hit.cosine - first.hit.cosine ||
    (first.hit.id < second.hit.id ? -1 : first.hit.id > second.hit.id ? 1 : 0) ||
    first.hit.passage - second.hit.passage
  );
}

// The best spans of a call, with the passages that hold them.
export function bestSpans(call, count) {
  const spans = call.passages.flatMap((hit) => hit.spans.map((span) => ({ span, hit })));
  const value = ({ span }) => span.cosine + span.prior;
  spans.sort((first, second) => value(second) - value(first));
  const least = spans.length ? 0.6 * spans[0].span.cosine : 0;
  return spans.filter(({ span }) => span.cosine >= least).slice(0, count);
}
