"""Register the conformance suite's clients with a sandbox, and write its configuration.

    python conformance/prepare.py

Reads `.billfold/sandbox.json`, writes `.billfold/conformance.json`. Each run registers two more.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from billfold.oauth.rules import public_keys as keys
from billfold.wiring.cli.app import run
from billfold.platform import ids
from billfold.wiring.cli_context import Wiring

SUITE = "https://localhost.emobix.co.uk:8443/"
PLAN = Path(__file__).with_name("plan.json")
SECOND = "?dummy1=lorem&dummy2=ipsum"
SCOPES = "openid profile email pockets.read"


def main() -> None:
    """Fill in the plan."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--state-dir", type=Path, default=Path(".billfold"))
    options.add_argument("--suite", default=SUITE, help="the address of the suite")
    asked = options.parse_args()
    box = json.loads((asked.state_dir / "sandbox.json").read_text())
    plan = json.loads(PLAN.read_text())
    callback = f"{asked.suite.rstrip('/')}/test/a/{plan['alias']}/callback"
    plan["server"]["discoveryUrl"] = f"{box['auth_url']}/.well-known/openid-configuration"
    plan["resource"]["resourceUrl"] = f"{box['customer_url']}/api/v2/pockets/"
    for client, redirect_uri in ((plan["client"], callback), (plan["client2"], callback + SECOND)):
        client["client_id"] += f"-{ids.new().hex[-8:]}"
        client["jwks"] = {"keys": [registered(asked.state_dir, client["client_id"], redirect_uri)]}
    written = asked.state_dir / "conformance.json"
    written.touch(mode=0o600)
    written.write_text(json.dumps(plan, indent=2) + "\n")
    print(f"Written to {written}: {plan['client']['client_id']}, {plan['client2']['client_id']}")


def registered(state_dir: Path, client_id: str, redirect_uri: str) -> dict[str, Any]:
    """Register a client with a new key; return the private key as JWK."""
    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        file.write(pem)
        file.flush()
        words = ["oauth-client", "create", "Conformance suite", "--client-id", client_id,
                 "--redirect-uri", redirect_uri, "--scope", SCOPES, "--key", file.name]  # fmt: skip
        bank = Wiring({**os.environ, "BILLFOLD_STATE_DIR": str(state_dir)})
        if run(bank, arguments=words) != 0:
            sys.exit("The clients could not be registered.")
    jwk: dict[str, Any] = jwt.algorithms.ECAlgorithm.to_jwk(key, as_dict=True)
    public = {name: value for name, value in jwk.items() if name != "d"}
    return {**jwk, "alg": "ES256", "use": "sig", "kid": keys.from_jwk(public).thumbprint}


if __name__ == "__main__":
    main()
