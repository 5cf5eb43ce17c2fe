"""Generates made-up personal records from a seed. A seed gives the same records on every machine and in every later
version. Pure.

No library is used: libraries change their names between releases, and with them every byte that a study encrypts. No
real person is meant: e-mail addresses end in example.org, and telephone numbers and network addresses are from ranges
reserved for documentation.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import msgspec


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


FIRST = {
    "Female": words(
        "Ada Amara Anna Astrid Beatriz Camila Chloe Clara Dilara Elena Emma Fatima Freya Grace Hana Ines Ingrid Jana Julia Keiko "
        "Laura Leila Lucia Maja Maria Mei Mira Nadia Nora Olga Paula Priya Rosa Sara Sofia Tanja Thandi Valeria Yasmin Zoe"
    ),
    "Male": words(
        "Abel Ahmed Akira Alan Anton Ben Boris Carlos Chen Daniel David Diego Emil Erik Felix Finn Georg Hugo Ivan Jakob "
        "Jonas Jorge Kofi Lars Leo Luca Marco Mateo Milan Noah Omar Oscar Pavel Pedro Rafael Samir Simon Tariq Tomas Viktor"
    ),
}
LAST = words(
    "Adams Ali Almeida Andersson Baker Bauer Berg Bianchi Brown Carter Castro Chen Clark Costa Cruz Davis Diallo Dubois Evans Fischer "
    "Flores Garcia Gomez Green Gupta Haas Hansen Hill Horvat Huang Ito Ivanov Jansen Johnson Jones Kaya Khan Kim King Kovacs "
    "Kowalski Larsen Lee Lewis Lopez Mahlangu Martin Mendes Meyer Moore Moreau Mori Muller Nagy Nguyen Novak Okafor Olsen Ortiz Park "
    "Patel Pereira Petrov Popescu Ramos Reyes Ricci Rossi Roy Santos Sato Schmidt Silva Singh Smith Sousa Suzuki Tanaka Taylor Virtanen"
)
CITIES = words(
    "Accra Almaty Antwerp Athens Bergen Bilbao Bogota Brno Cork Cusco Dakar Davao Denver Dresden Durban Galway Geneva Ghent Graz "
    "Hanoi Izmir Jaipur Kigali Kobe Kyoto Lagos Leeds Leipzig Lima Lisbon Lyon Maputo Medan Merida Nantes Natal Oporto Osaka Oulu "
    "Perth Pisa Plovdiv Porto Quito Recife Riga Rosario Salta Sendai Seville Sofia Split Tampere Tartu Trieste Tunis Turin Utrecht Varna Vigo"
)
NETWORKS = ("192.0.2", "198.51.100", "203.0.113")
"""RFC 5737: addresses for documentation."""


class Person(msgspec.Struct, frozen=True):
    """One record. Its fields are the table's columns, in this order."""

    id: int
    first_name: str
    last_name: str
    email: str
    gender: str
    phone: str
    city: str
    ip_address: str


COLUMNS = Person.__struct_fields__


def people(count: int, seed: int) -> Iterator[Person]:
    """Yield `count` people with ids from 1 on. A shorter list is the beginning of a longer one of the same seed."""
    # Only `random()` is used: Python guarantees its sequence for a seed across versions.
    draw = random.Random(seed).random  # noqa: S311 - nothing secret is drawn
    for number in range(1, count + 1):
        gender = "Female" if draw() < 0.5 else "Male"
        first, last = pick(FIRST[gender], draw()), pick(LAST, draw())
        yield Person(
            id=number,
            first_name=first,
            last_name=last,
            email=f"{first}.{last}{number}@example.org".lower(),
            gender=gender,
            phone=f"+1 {200 + int(draw() * 800)} 555 01{int(draw() * 100):02}",
            city=pick(CITIES, draw()),
            ip_address=f"{pick(NETWORKS, draw())}.{1 + int(draw() * 254)}",
        )


def pick(names: tuple[str, ...], share: float) -> str:
    return names[int(share * len(names))]


def values(person: Person) -> str:
    """Return `(1, 'Ada', …)`, as in SQL. Pure."""
    return "(" + ", ".join(literal(getattr(person, name)) for name in COLUMNS) + ")"


def literal(value: int | str) -> str:
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def inserts(table: str, count: int, seed: int, batch: int) -> Iterator[str]:
    """Yield INSERT statements of at most `batch` people each; 1 for servers that accept only one row."""
    head = f"INSERT INTO {table} ({', '.join(COLUMNS)}) VALUES "
    rows: list[str] = []
    for person in people(count, seed):
        rows.append(values(person))
        if len(rows) == batch:
            yield head + ", ".join(rows)
            rows = []
    if rows:
        yield head + ", ".join(rows)
