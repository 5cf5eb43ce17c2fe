"""probe: what a witness may use: the server pair, the agent, and what each arm negotiated."""

from __future__ import annotations

from ciphercost.engines import Engine
from ciphercost.load.agent import Agent
from ciphercost.mechanisms import Mechanism
from ciphercost.mechanisms._rest import ArmAtRest
from ciphercost.model.connection import Connected, Connection
from ciphercost.model.slices import Proof, Witness
from ciphercost.model.spec import Arm
from ciphercost.provision import columns
from ciphercost.provision.server_pair import ServerPair

NULL_SEEN = "no bytes seen: the witness examined nothing"


class Probe:
    """Everything that a witness may use: the server pair, the agent, what each arm negotiated."""

    def __init__(self, engine: Engine, mechanism: Mechanism, pair: ServerPair, agent: Agent, session: int) -> None:
        self.engine = engine
        self.mechanism = mechanism
        self.pair = pair
        self.agent = agent
        self.session = session
        self.connected: dict[Arm, Connected] = {}
        self.ended = False
        """Whether no more witnesses run: the server kept one past its deadline, or it is your own server and nothing
        may be sent to it unencrypted.
        """

    def connection(self, arm: Arm) -> tuple[str, Connection]:
        """The agent's arm and how it is connected. The first caller connects it, usually the client witness."""
        name, connection = f"prove-{arm}", self.pair.connect[arm].single
        if arm not in self.connected:
            self.connected[arm] = self.agent.connect(name, connection)
        return name, connection

    def look(self, arm: Arm) -> ArmAtRest:
        """The arm as a mechanism at rest sees it."""
        name, connection = self.connection(arm)
        return self.pair.look(arm, self.agent, name, connection)

    def arm_view(self, arm: Arm) -> columns.ArmView:
        """The arm as a column mechanism sees it."""
        name, _ = self.connection(arm)
        return self.pair.arm_view(arm, self.agent, name)

    def proof(self, arm: Arm, witness: Witness, passed: bool, detail: str, code: str = "") -> Proof:
        words = " ".join(detail.split())
        return Proof(arm=arm, witness=witness, passed=passed, detail=words, session=self.session, code=code)
