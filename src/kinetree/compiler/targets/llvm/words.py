"""Tables of 8-byte words in LLVM assembly: addresses, loads, stores, and arithmetic on them."""

from __future__ import annotations

from .writer import Text


def begin(head: str) -> Text:
    """Return the lines of a function that begins with a head, up to its first block."""
    t = Text()
    t.put(f"{head} {{", "entry:")
    return t


def ended(t: Text) -> str:
    """Return the assembly of a finished function."""
    t.put("}")
    return t.text()


def word(t: Text, base: str, place: int | str) -> str:
    """Write the address of a word."""
    return t.new(f"getelementptr i64, ptr {base}, i64 {place if isinstance(place, str) else int(place)}")


def load(t: Text, base: str, place: int | str) -> str:
    """Write the load of a word."""
    return t.new(f"load i64, ptr {word(t, base, place)}")


def store(t: Text, base: str, place: int | str, value: str) -> None:
    """Write the store of a word."""
    t.put(f"  store i64 {value}, ptr {word(t, base, place)}")


def field(t: Text, thing: str, offset: int, kind: str = "ptr") -> str:
    """Write the load of a field of an object at an offset [bytes]."""
    return t.new(f"load {kind}, ptr {t.new(f'getelementptr i8, ptr {thing}, i64 {int(offset)}')}")


def pointer(t: Text, value: str) -> str:
    """Write a word as a pointer."""
    return t.new(f"inttoptr i64 {value} to ptr")


def since(t: Text, start: str) -> str:
    """Write the time since a start [ns]; the module has the function @now."""
    return t.new(f"sub i64 {t.new('call i64 @now()')}, {start}")


def smaller(t: Text, one: str, other: str) -> str:
    """Write the smaller one of two numbers."""
    return t.new(f"call i64 @llvm.smin.i64(i64 {one}, i64 {other})")


def double(t: Text, value: str) -> str:
    """Write a word as a float64 number."""
    return t.new(f"sitofp i64 {value} to double")


def whole(t: Text, value: str) -> str:
    """Write a float64 expression as a word, rounded toward zero."""
    return t.new(f"fptosi double {t.new(value)} to i64")
