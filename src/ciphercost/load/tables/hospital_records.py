"""Generates made-up records of hospital beds from a number and a seed.

They have the columns of OpenDataSUS' "Registro de Ocupação Hospitalar COVID-19", one line per hospital and day, with
values of its lengths and frequencies. No real hospital is meant. As in `people`, `random()` is the only source of
randomness.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from math import log

import msgspec

from ciphercost.load.tables.people import pick


class Record(msgspec.Struct, frozen=True):
    """One line of the register. Its fields are the variables of the workloads' `insert`."""

    number: int
    """1, 2, 3 … in the order of the source. Not part of the register."""
    source_id: str
    notified: str
    """`2021-03-01 03:00:00.000`; empty: NULL. The same holds for `created` and `updated`."""
    cnes: str
    """The hospital's number in the national register: seven digits, some with leading zeros."""
    suspected_ward: int
    suspected_icu: int
    confirmed_ward: int
    confirmed_icu: int
    covid_icu: int
    covid_ward: int
    hospital_icu: int
    hospital_ward: int
    suspected_deaths: int
    suspected_discharges: int
    confirmed_deaths: int
    confirmed_discharges: int
    origin: str
    user_name: str
    deleted: int
    """0 or 1, like `validated`."""
    validated: int
    state: str
    municipality: str
    created: str
    updated: str


FIELDS = Record.__struct_fields__
OUTCOMES = ("suspected_deaths", "suspected_discharges", "confirmed_deaths", "confirmed_discharges")
OCCUPANCY = (
    "suspected_ward", "suspected_icu", "confirmed_ward", "confirmed_icu", "covid_icu", "covid_ward", "hospital_icu", "hospital_ward",
)  # fmt: skip
TIMES = ("notified", "created", "updated")
LENGTHS = {"source_id": 24, "cnes": 12, "origin": 40, "user_name": 60, "state": 40, "municipality": 60}
"""Characters that the secret columns have room for; the workload files use the same lengths."""
STATES = {
    "São Paulo": (46649, "São Paulo|Campinas|Guarulhos|Santo André|São José dos Campos|Ribeirão Preto|Jundiaí|Santa Bárbara d'Oeste"),
    "Minas Gerais": (21411, "Belo Horizonte|Uberlândia|Contagem|Juiz de Fora|Montes Claros|São João del-Rei|Três Corações"),
    "Rio de Janeiro": (17463, "Rio de Janeiro|Niterói|São Gonçalo|Petrópolis|Campos dos Goytacazes|Nova Iguaçu"),
    "Bahia": (14985, "Salvador|Feira de Santana|Vitória da Conquista|Ilhéus|Itabuna|Juazeiro"),
    "Paraná": (11597, "Curitiba|Londrina|Maringá|Ponta Grossa|Cascavel|Foz do Iguaçu"),
    "Rio Grande do Sul": (11466, "Porto Alegre|Caxias do Sul|Pelotas|Santa Maria|Bagé|Passo Fundo"),
    "Pernambuco": (9674, "Recife|Olinda|Caruaru|Petrolina|Jaboatão dos Guararapes|Vitória de Santo Antão"),
    "Ceará": (9240, "Fortaleza|Juazeiro do Norte|Sobral|Crato|Maracanaú|Quixadá"),
    "Pará": (8777, "Belém|Ananindeua|Santarém|Marabá|Castanhal|São Félix do Xingu"),
    "Santa Catarina": (7338, "Florianópolis|Joinville|Blumenau|Chapecó|Criciúma|Joaçaba"),
    "Goiás": (7206, "Goiânia|Anápolis|Aparecida de Goiânia|Rio Verde|Catalão|Jataí"),
    "Maranhão": (7153, "São Luís|Imperatriz|Caxias|Timon|Codó|Açailândia"),
    "Amazonas": (4269, "Manaus|Parintins|Itacoatiara|Tefé|Manacapuru|São Gabriel da Cachoeira"),
    "Espírito Santo": (4108, "Vitória|Vila Velha|Serra|Cariacica|Cachoeiro de Itapemirim|São Mateus"),
    "Paraíba": (4059, "João Pessoa|Campina Grande|Patos|Santa Rita|Sousa|Guarabira"),
    "Mato Grosso": (3567, "Cuiabá|Várzea Grande|Rondonópolis|Sinop|Cáceres|Vila Bela da Santíssima Trindade"),
    "Rio Grande do Norte": (3560, "Natal|Mossoró|Parnamirim|Caicó|Açu|São Gonçalo do Amarante"),
    "Alagoas": (3365, "Maceió|Arapiraca|Palmeira dos Índios|Penedo|União dos Palmares|São Miguel dos Campos"),
    "Piauí": (3289, "Teresina|Parnaíba|Picos|Floriano|Piripiri|São Raimundo Nonato"),
    "Distrito Federal": (3094, "Brasília"),
    "Mato Grosso do Sul": (2839, "Campo Grande|Dourados|Três Lagoas|Corumbá|Ponta Porã|Naviraí"),
    "Sergipe": (2338, "Aracaju|Lagarto|Itabaiana|Estância|Nossa Senhora do Socorro|Propriá"),
    "Rondônia": (1815, "Porto Velho|Ji-Paraná|Ariquemes|Vilhena|Cacoal|Guajará-Mirim"),
    "Tocantins": (1607, "Palmas|Araguaína|Gurupi|Porto Nacional|Paraíso do Tocantins|Colinas do Tocantins"),
    "Acre": (906, "Rio Branco|Cruzeiro do Sul|Sena Madureira|Tarauacá|Feijó|Brasiléia"),
    "Amapá": (877, "Macapá|Santana|Laranjal do Jari|Oiapoque|Mazagão|Porto Grande"),
    "Roraima": (652, "Boa Vista|Rorainópolis|Caracaraí|Pacaraima|Cantá|Mucajaí"),
}  # fmt: skip
"""State -> thousands of people (2021), and some of its municipalities, the largest first."""
ORIGINS = (("parse-api", 0.62), ("portal", 0.88), ("", 1.0))
"""Where a line came from, with the cumulative share of lines."""
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
ID_LETTERS = 10
FIRST_DAY, DAYS = datetime(2021, 1, 1, 3), 365
MEANS = {"suspected_ward": 0.8, "suspected_icu": 0.3, "confirmed_ward": 2.2, "confirmed_icu": 2.6, "hospital_icu": 3.0, "hospital_ward": 9.0} | {
    "suspected_deaths": 0.05, "suspected_discharges": 0.25, "confirmed_deaths": 0.2, "confirmed_discharges": 0.9
}  # fmt: skip
"""For counts with a geometric distribution: mostly 0, sometimes several dozen."""


def records(count: int, seed: int) -> Iterator[Record]:
    """Yield `count` made-up records. A shorter list is the beginning of a longer one of the same seed."""
    draw = random.Random(seed).random  # noqa: S311 - nothing secret is drawn
    names, shares = tuple(STATES), _shares([people for people, _ in STATES.values()])
    towns = {name: tuple(text.split("|")) for name, (_, text) in STATES.items()}

    def word() -> str:
        return "".join(LETTERS[int(draw() * len(LETTERS))] for _ in range(ID_LETTERS))

    for number in range(1, count + 1):
        source_id, share = word(), draw()
        state = next(name for name, end in zip(names, shares, strict=True) if share < end)
        # Squared, because a state's largest towns have the most hospitals.
        municipality = pick(towns[state], draw() ** 2)
        counts = {name: int(log(1 - draw()) / log(mean / (1 + mean))) for name, mean in MEANS.items()}
        counts["covid_ward"] = counts["suspected_ward"] + counts["confirmed_ward"]
        counts["covid_icu"] = counts["suspected_icu"] + counts["confirmed_icu"]
        counts["hospital_ward"] += counts["covid_ward"]
        counts["hospital_icu"] += counts["covid_icu"]
        notified = FIRST_DAY + timedelta(days=int(draw() * DAYS))
        created = notified + timedelta(milliseconds=int(draw() * 30 * 3600 * 1000))
        again = draw()
        updated = created + timedelta(milliseconds=int(draw() * 48 * 3600 * 1000)) if again < 0.3 else created
        share = draw()
        yield Record(
            number=number,
            source_id=source_id,
            notified=written(notified),
            cnes=f"{int(draw() * 9_999_999) + 1:07}" if draw() < 0.2 else f"{2_000_000 + int(draw() * 800_000)}",
            **counts,
            origin=next(name for name, end in ORIGINS if share < end),
            user_name=f"_User${word()}" if draw() < 0.95 else "",
            deleted=int(draw() < 0.04),
            validated=int(draw() < 0.02),
            state=state,
            municipality=municipality,
            created=written(created),
            updated=written(updated),
        )


def _shares(weights: Sequence[int]) -> list[float]:
    """Return the cumulative shares from 0 to 1; the last one is 1."""
    total, ends, sum_ = sum(weights), [], 0
    for weight in weights:
        sum_ += weight
        ends.append(sum_ / total)
    return ends


def written(time: datetime) -> str:
    """Write a time with milliseconds, in a form that every server reads. Pure."""
    return time.isoformat(" ", "milliseconds")
