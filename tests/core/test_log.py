"""What is kept of what an attempt says: the beginning and the end, as text that every store takes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hourhand.core.log import CHUNK_COST_BYTES, HeadAndTail, Stream, TextDecoder, pieces, storable

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


def kept(texts: list[str], head: int, tail: int) -> tuple[str, str, int]:
    cap = HeadAndTail(head, tail)
    first = "".join(cap.take(Stream.OUTPUT, text) for text in texts)
    return first, "".join(text for _, text in cap.tail()), cap.left_out_bytes


def test_what_fits_is_passed_on_as_it_is() -> None:
    assert kept(["one\n", "two\n"], 1_000, 100) == ("one\ntwo\n", "", 0)


def test_beyond_the_head_the_end_is_kept() -> None:
    head, tail, left_out = kept(["a" * 500, "b" * 500, "c" * 30], CHUNK_COST_BYTES + 100, 50)
    assert head == "a" * 100
    assert tail == "c" * 30  # the pieces before it would cost more than there is room for
    assert left_out == 900


def test_the_end_of_one_large_text_is_kept() -> None:
    head, tail, left_out = kept(["a" * 1_000 + "z" * 50], CHUNK_COST_BYTES, 50)
    assert (head, tail, left_out) == ("", "z" * 50, 1_000)


@given(st.lists(TEXTS, max_size=40), st.integers(0, 400), st.integers(1, 300))
def test_nothing_is_lost_unaccounted_for(texts: list[str], head: int, tail: int) -> None:
    whole = "".join(texts).encode()
    first, last, left_out = kept(texts, head, tail)
    assert whole.startswith(first.encode())
    assert whole.endswith(last.encode())
    assert len(first.encode()) + len(last.encode()) + left_out == len(whole)
    assert len(first.encode()) <= head
    assert len(last.encode()) <= tail + CHUNK_COST_BYTES


@given(st.lists(TEXTS, max_size=400))
def test_many_small_texts_are_capped_by_their_number(texts: list[str]) -> None:
    cap = HeadAndTail(10 * CHUNK_COST_BYTES, CHUNK_COST_BYTES)
    assert sum(bool(cap.take(Stream.LOG, text)) for text in texts) <= 10


@given(TEXTS, st.integers(4, 20))
def test_pieces_make_the_whole_again(text: str, size: int) -> None:
    found = pieces(text, size)
    assert "".join(found) == text
    assert all(0 < len(piece.encode()) <= size for piece in found)


@given(st.binary(max_size=200), st.integers(1, 7))
def test_any_bytes_become_text_however_they_are_cut(data: bytes, step: int) -> None:
    decoder = TextDecoder()
    cut = "".join(decoder.text(data[start : start + step]) for start in range(0, len(data), step))
    cut += decoder.text(b"", final=True)
    assert cut == data.decode(errors="replace").replace("\0", "\ufffd")
    assert "\0" not in cut


@pytest.mark.parametrize(("text", "expected"), [("a\0b", "a\ufffdb"), ("\ud800", "\\ud800"), ("ü", "ü")])
def test_storable(text: str, expected: str) -> None:
    assert storable(text) == expected
