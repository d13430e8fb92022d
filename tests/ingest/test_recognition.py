"""Sources are recognised by their content: kinds, encodings, delimiters, folders and globs."""

from __future__ import annotations

import ast
import codecs
import gzip
import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from hybrid_search.errors import InputError, UsageError
from hybrid_search.ingest import document_parser
from hybrid_search.ingest.sources import files, json_texts, recognition
from hybrid_search.ingest.sources.formats.base import Format
from hybrid_search.ingest.sources.read_options import ReadOptions
from hybrid_search.ingest.types import SourceLine
from tests.conftest import DATA
from tests.helpers.cli import invoke_cli

DOCUMENTS = [{"id": "a", "text": "I want a refund."}, {"id": "b", "text": "Café £12, I’d say."}]
TABLE = [["id", "text", "agent"], ["a", "My parcel; late, too", "Zoë"], ["b", "The café’s £12", ""]]
TABLE_DOCUMENTS = [
    {"id": "a", "text": "My parcel; late, too", "agent": "Zoë"},
    {"id": "b", "text": "The café’s £12"},
]


def write(data: bytes | str, name: str = "calls.jsonl") -> str:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_bytes(data if isinstance(data, bytes) else data.encode())
    return name


def read(*sources: str, **options: Any) -> list[SourceLine]:
    lines = files.read(sources, ReadOptions(**options))
    return [line for line in lines if line.fault or line.data.strip()]


def read_documents(*sources: str, **options: Any) -> list[dict[str, Any]]:
    lines = read(*sources, **options)
    assert [line.fault for line in lines] == [None] * len(lines)
    return [json.loads(line.data.decode("utf-8-sig")) for line in lines]


JSON_TEXTS = {
    "lines": "\n".join(map(json.dumps, DOCUMENTS)),
    "lines with blank ones": "\n\n".join(map(json.dumps, DOCUMENTS)) + "\n  \n",
    "an array on one line": json.dumps(DOCUMENTS),
    "an indented array": json.dumps(DOCUMENTS, indent=1),
    "an array with an object a line": "[\n" + ",\n".join(map(json.dumps, DOCUMENTS)) + "\n]\n",
    "indented objects": "\n".join(json.dumps(document, indent=2) for document in DOCUMENTS),
    "an array of each line": "\n".join(json.dumps([document]) for document in DOCUMENTS),
    "lines that end in CR": "\r".join(map(json.dumps, DOCUMENTS)),
}
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be")


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("form", JSON_TEXTS)
def test_json_is_read_in_every_form_and_unicode_encoding(form: str, encoding: str) -> None:
    source = write(JSON_TEXTS[form].replace("\\u00e9", "é").encode(encoding))
    assert read_documents(source) == DOCUMENTS


def test_utf16_of_big_endian_with_a_mark_is_read() -> None:
    data = codecs.BOM_UTF16_BE + JSON_TEXTS["lines"].encode("utf-16-be")
    assert read_documents(write(data)) == DOCUMENTS


@pytest.mark.parametrize("name", ["calls.json", "calls", "calls.txt", "calls.json.gz", "-"])
def test_the_content_tells_the_kind_whatever_the_name(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = json.dumps(DOCUMENTS, indent=1).encode()
    if name == "-":
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    else:
        write(gzip.compress(data) if name.endswith(".gz") else data, name)
    assert read_documents(name) == DOCUMENTS


def make_table(delimiter: str, end: str = "\r\n", quote: str = '"') -> str:
    rows = [[f"{quote}{cell}{quote}" for cell in row] for row in TABLE]
    return "".join(delimiter.join(row) + end for row in rows)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", [*ENCODINGS, "cp1252"])
def test_a_table_is_read_with_every_delimiter_and_encoding(delimiter: str, encoding: str) -> None:
    assert read_documents(write(make_table(delimiter).encode(encoding), "t.csv")) == TABLE_DOCUMENTS


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_table_is_read_with_every_end_of_lines(end: str) -> None:
    assert read_documents(write(make_table(",", end), "t.csv")) == TABLE_DOCUMENTS


@pytest.mark.parametrize("delimiter", [",", ";", "#"])
def test_a_line_that_names_the_delimiter_is_obeyed_and_no_row(delimiter: str) -> None:
    table = f"sep={delimiter}\r\n{make_table(delimiter)}"
    lines = read(write(table, "t.csv"))
    assert [json.loads(line.data) for line in lines] == TABLE_DOCUMENTS
    assert [line.number for line in lines] == [3, 4]


@pytest.mark.parametrize("name", ["table.txt", "table", "-"])
def test_a_table_is_recognised_by_its_header(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = make_table(";").encode()
    if name == "-":
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    else:
        write(data, name)
    assert read_documents(name) == TABLE_DOCUMENTS


def test_the_case_of_a_header_and_blanks_in_it_do_not_matter() -> None:
    source = write("ID, Text ,Agent\nt-1,A late parcel,Ali\n", "t.csv")
    assert read_documents(source) == [{"id": "t-1", "text": "A late parcel", "Agent": "Ali"}]


def test_rows_of_empty_cells_and_empty_cells_behind_a_row_are_no_fault() -> None:
    assert read_documents(write("id,text\na,hello,,\n,\n,,,\nb,bye\n", "t.csv")) == [
        {"id": "a", "text": "hello"},
        {"id": "b", "text": "bye"},
    ]


def test_a_guessed_encoding_is_said_once_a_file_and_can_be_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = write(make_table(",").encode("cp1252"), "t.csv")
    read_documents(source)
    assert capsys.readouterr().err == (
        "t.csv is read as Windows-1252, by its characters: "
        "--encoding names another if that is wrong\n"
    )
    greek = write("id,text\na,Θέλω τα χρήματά μου πίσω\n".encode("cp1253"), "g.csv")
    assert read_documents(greek, encoding="cp1253")[0]["text"] == "Θέλω τα χρήματά μου πίσω"
    assert capsys.readouterr().err == ""
    with pytest.raises(UsageError, match="--encoding 'nonsense' is unknown"):
        files.check([source], options=ReadOptions(encoding="nonsense"))


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("id;text\n1;Ich möchte mein Geld zurück, die Ware ist beschädigt\n", "cp1252"),
        ("id;text\n1;El señor Muñoz llamó por la devolución de su compra\n", "cp1252"),
        ("id;text\n1;It cost €20 and they won’t pay\n", "cp1252"),
        ("id;text\n1;Chciałbym zwrócić produkt, ponieważ jest uszkodzony\n", "cp1250"),
        ("id;text\n1;Я хочу вернуть товар, деньги не пришли на счёт\n", "cp1251"),
    ],
)
def test_the_encoding_of_a_short_table_is_guessed(text: str, encoding: str) -> None:
    (document,) = read_documents(write(text.encode(encoding), "t.csv"))
    assert document["text"] == text.strip().rpartition(";")[2]


def test_a_damaged_byte_in_utf8_makes_no_other_encoding_of_it() -> None:
    table = "id,text\na,Le café où j’étais\nb,bad \udcff byte\nc,Zoë\n"
    source = write(table.encode("utf-8", "surrogateescape"), "t.csv")
    assert [line.fault is None for line in read(source)] == [True, False, True]
    line = json.dumps(DOCUMENTS[0]).encode()
    lines = read(write(line + b'\n{"id": "x", "text": "\xff"}\n'))
    assert [document_parser.find_valid_id(line.data) for line in lines] == ["a", None]


def test_an_array_that_breaks_off_is_one_refusal_behind_what_was_whole() -> None:
    data = json.dumps(DOCUMENTS, indent=1)
    lines = read(write(data[:-20]))
    assert [line.number for line in lines] == [1, 2]
    assert json.loads(lines[0].data) == DOCUMENTS[0]
    assert lines[1].fault is not None
    assert lines[1].fault.startswith("not JSON: Unterminated string")


def test_behind_a_broken_object_reading_goes_on_at_the_next_that_begins_a_line() -> None:
    broken = '{\n "id": "x",\n "text": no\n}\n'
    texts = [json.dumps(document, indent=1) for document in DOCUMENTS]
    lines = read(write("\n".join([texts[0], broken, texts[1]])))
    assert [line.fault is None for line in lines] == [True, False, True]
    assert json.loads(lines[2].data) == DOCUMENTS[1]


def test_objects_are_whole_wherever_the_pieces_of_a_file_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    documents = [{"id": str(n), "text": "é" * n, "n": n, "ok": True} for n in range(1, 30)]
    for chunk in range(1, 40):
        monkeypatch.setattr(json_texts, "CHUNK", chunk)
        records = json_texts.read_values(io.BytesIO(json.dumps(documents, indent=1).encode()))
        assert [json.loads(record.raw) for record in records] == documents


def test_an_array_is_read_one_object_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_texts, "MAX_LINE_BYTES", 2000)
    monkeypatch.setattr(json_texts, "CHUNK", 100)
    many = [{"id": str(number), "text": "x" * 50} for number in range(200)]
    assert len(read_documents(write(json.dumps(many, indent=1)))) == 200
    huge = [*many[:2], {"id": "huge", "text": "x" * 5000}]
    *_, last = read(write(json.dumps(huge, indent=1)))
    assert last.fault is not None
    assert last.fault.startswith("an object is over 2000 characters long")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"PK\x03\x04" + bytes(40), "a ZIP file or an Excel workbook: unpack it, or save its "),
        (b"RIFF\x00\x01\x00WAVE", "a binary file of no format that is known: --format names "),
        (b"Once upon a time\n", "a text of no format that is known: --format names one of jsonl,"),
    ],
)
def test_what_nothing_reads_is_one_refusal_that_helps(data: bytes, reason: str) -> None:
    after = write(json.dumps(DOCUMENTS[0]), "after.jsonl")
    first, second = read(write(data, "unknown.bin"), after)
    assert first.fault is not None
    assert first.fault.startswith(reason)
    assert json.loads(second.data) == DOCUMENTS[0]


def read_notes(file: BinaryIO, id: str) -> Iterator[dict[str, Any]]:
    for line in file:
        if line.startswith(b"bad"):
            raise InputError("a bad note", "of line 2")
        if line.startswith(b"odd"):
            raise KeyError("odd")
        yield {"id": id, "text": line.decode().strip()}


NOTES = Format("notes", lambda _, name: name.endswith(".note"), read_notes)


@pytest.fixture
def _notes(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (files, recognition):
        monkeypatch.setattr(module, "FORMATS", (NOTES,))


@pytest.mark.usefixtures("_notes")
def test_files_of_a_folder_have_their_place_in_it_as_id_and_a_bad_one_is_one_refusal() -> None:
    write("hello\n", "calls/one.note")
    write(gzip.compress(b"packed\n"), "calls/deep/er/two.note.gz")
    write("bad\n", "calls/b.note")
    write("odd\n", "calls/c.note")
    for name in (".hidden.note", "x.note.tmp", "x.part", ".git/x.note", "a.rejected.jsonl"):
        write("hidden\n", f"calls/{name}")
    lines = read("calls")
    assert {line.source: json.loads(line.data)["id"] for line in lines if not line.fault} == {
        "calls/one.note": "one",
        "calls/deep/er/two.note.gz": "deep/er/two",
    }
    assert {line.source: (line.fault, line.detail) for line in lines if line.fault} == {
        "calls/b.note": ("a bad note", "of line 2"),
        "calls/c.note": ("not a whole file of the format notes", "KeyError: 'odd'"),
    }


@pytest.mark.usefixtures("_notes")
def test_globs_and_single_files_are_sources_and_an_id_is_the_place_behind_the_pattern() -> None:
    for name in ("calls/may/a.note", "calls/june/b.note", "calls/june/c.other"):
        write("hello\n", name)
    folder = Path("calls").absolute()
    for pattern in ("calls/*/*.note", "calls/**/*.note", f"{folder}/*/*.note"):
        assert [document["id"] for document in read_documents(pattern)] == ["june/b", "may/a"]
    assert [document["id"] for document in read_documents("calls/ma*")] == ["may/a"]
    assert read_documents("calls/may/a.note")[0]["id"] == "a"


@pytest.mark.usefixtures("_notes")
def test_a_format_that_is_named_counts_more_than_what_a_file_looks_like() -> None:
    source = write('{"id": "a", "text": "x"}\n', "calls.jsonl")
    assert read_documents(source, format="notes")[0]["text"] == '{"id": "a", "text": "x"}'
    with pytest.raises(UsageError, match="--format is 'other': it is one of jsonl, json, csv, "):
        files.check([source], options=ReadOptions(format="other"))


@pytest.mark.usefixtures("_notes")
def test_a_file_whose_keys_are_named_is_no_format_that_has_the_same_keys() -> None:
    source = write('{"call": "a", "body": "x"}\n', "calls.note")
    columns = {"id": "call", "text": "body"}
    assert read_documents(source, columns=columns) == [{"id": "a", "text": "x"}]


def test_a_pipe_is_a_source_of_every_kind() -> None:
    program = "import sys; from hybrid_search.ingest.sources import files\n"
    program += "print([line.data.decode() for line in files.read(sys.argv[1:])])"
    write(make_table(";"), "t.csv")
    write(json.dumps(DOCUMENTS, indent=1), "array.json")
    command = f"{sys.executable} -c '{program}' <(cat t.csv) <(gzip -c array.json)"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert [json.loads(data) for data in ast.literal_eval(result.stdout)] == [
        *TABLE_DOCUMENTS,
        *DOCUMENTS,
    ]


def test_a_whole_folder_goes_in_by_the_command() -> None:
    write(json.dumps(DOCUMENTS, indent=1), "calls/a.json")
    write(make_table(";").replace('"a"', '"c"').replace('"b"', '"d"'), "calls/2026/t.csv")
    result = invoke_cli("ingest", "calls", "--url", "embedded:store")
    assert (result.status, result.json["documents"]) == (0, 4)
    again = invoke_cli("ingest", "calls", "--url", "embedded:store", "--checkpoint", "done.json")
    assert (again.status, again.json["skipped"]) == (0, 4)


OF_TWO = (
    "array.json array.jsonl blank_lines.jsonl bom.jsonl caps_header.csv cp1252.csv "
    "cr_only.csv lf_seps.jsonl quoted_newline.csv semicolon.csv sep_line.csv "
    "utf16.jsonl utf16_excel.tsv utf16le_bom.csv utf8_bom.csv "
)
OF_ONE = (
    "deepgram.jsonl dup_header.csv giant_word.jsonl nullspeaker.jsonl pretty.jsonl single.jsonl "
)
FOUND: dict[str, tuple[int, str | None]] = {
    **dict.fromkeys(OF_TWO.split(), (2, None)),
    **dict.fromkeys(OF_ONE.split(), (1, None)),
    "asr.jsonl": (218, None),
    "crowd.jsonl": (41, None),
    "dates.jsonl": (6, None),
    "dup_ids.csv": (0, "rows 2 and 3 of the table have the same id, and nothing of it was taken"),
    "dupkeys.jsonl": (0, "the key 'text' stands twice in one object: keep one of them"),
    "elision.jsonl": (6, None),
    "ids.jsonl": (5, "id must be a text or a whole number, and is true"),  # a truth
    "meta.jsonl": (14, "metadata field 'tags' holds a list inside a list"),
    "nan.jsonl": (2, "metadata field 'csat' is infinite or not a number, which JSON"),
    "nulls.jsonl": (5, None),
    "oddids.jsonl": (6, "the id is empty"),
    "semantic.jsonl": (34, None),
    "tickets.jsonl": (18, None),
    "times.jsonl": (5, None),
    "turns.jsonl": (13, "turns.start_ms must be at least 0"),
    "unbalanced_quote.csv": (1, "a quote inside a quoted cell stands alone: write it twice"),
    "unicode.jsonl": (19, None),
}
"""Of each file of `found` how many documents it has, and the first reason of a refusal."""

EXPORTS: dict[str, tuple[int, str | None]] = {
    "calls.csv": (
        0,
        "no columns id and text are among the 3 of the table: "
        'give --columns "id=Call ID,text=Transcript"',
    ),
    "ownkeys.jsonl": (
        0,
        "no id: if other keys have them, name these, as in --columns id=call_id,text=transcript",
    ),
    "u.csv": (
        0,
        "no columns id and text are among the 3 of the table: "
        "give --columns id=call_id --rows turn",
    ),
    "utterances.csv": (
        0,
        "no columns id and text are among the 8 of the table: "
        "give --columns id=call_id --rows turn",
    ),
    **dict.fromkeys(
        ("contactlens", "genesys", "transcribe", "whisper", "vtt", "srt", "txt"), (3, None)
    ),
    "zendesk": (12, None),
}
WITH_OPTIONS: dict[str, tuple[ReadOptions, int]] = {
    "calls.csv": (ReadOptions({"id": "Call ID", "text": "Transcript"}), 12),
    "ownkeys.jsonl": (ReadOptions({"id": "call_id", "text": "transcript"}), 12),
    "u.csv": (ReadOptions({"id": "call_id"}, "turn"), 1),
    "utterances.csv": (ReadOptions({"id": "call_id"}, "turn"), 12),
}


def count_documents(source: Path, options: ReadOptions) -> tuple[int, str | None]:
    """Return how many documents a source has, and the first reason why one is refused."""
    count, reasons = 0, []
    for line in read_parsed(source, options):
        if isinstance(line, InputError):
            reasons.append(str(line))
        else:
            count += 1
    return count, reasons[0] if reasons else None


def read_parsed(source: Path, options: ReadOptions) -> Iterator[Any]:
    for line in files.read([str(source)], options):
        if not line.fault and not line.data.strip():
            continue
        try:
            if line.fault:
                raise InputError(line.fault)
            yield document_parser.parse(line.data)
        except InputError as error:
            yield error


@pytest.mark.data
@pytest.mark.parametrize("name", FOUND)
def test_every_file_on_which_something_went_wrong_is_read_or_refused_with_a_line(name: str) -> None:
    count, reason = count_documents(DATA / "found" / name, ReadOptions())
    expected_count, beginning = FOUND[name]
    assert count == expected_count
    assert (reason or "").startswith(beginning or "")
    assert (reason is None) == (beginning is None)


@pytest.mark.data
def test_no_file_with_a_situation_is_left_out() -> None:
    names = {path.name for path in (DATA / "found").iterdir()}
    assert names - {"README.md"} == set(FOUND)
    names = {path.name for path in (DATA / "exports").iterdir()}
    assert names - {"README.md"} == set(EXPORTS)


@pytest.mark.data
@pytest.mark.parametrize("name", EXPORTS)
def test_every_export_is_read_or_refused_with_the_options_that_read_it(name: str) -> None:
    assert count_documents(DATA / "exports" / name, ReadOptions()) == EXPORTS[name]
    if name in WITH_OPTIONS:
        options, count = WITH_OPTIONS[name]
        assert count_documents(DATA / "exports" / name, options) == (count, None)


def test_columns_of_one_name_or_none_are_numbered_and_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = write("id,text,note,note,\na,hello,one,two,three\n", "t.csv")
    assert read_documents(source) == [
        {"id": "a", "text": "hello", "note": "one", "note_2": "two", "column_5": "three"}
    ]
    assert "columns 3 and 4 of the table have the same name" in capsys.readouterr().err
