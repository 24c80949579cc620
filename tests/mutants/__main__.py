"""python -m tests.mutants [NAME …]: switches safeguards off, one after the other, and sees that each is missed.

First the tests that are to notice are run on the source as it is, where they must find nothing.
"""

import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack

from tests.mutants.running import LIMIT_S, SOURCE, Finding, run_tests, shortened, try_out
from tests.mutants.table import MUTANTS, Mutant
from tests.servers.postgres import PostgresServer, given_server

_AT_ONCE = 2


def main(names: list[str]) -> int:
    """The exit code: 0 if every mutant was noticed."""
    chosen = [mutant for mutant in MUTANTS if not names or mutant.name in names]
    if unknown := set(names) - {mutant.name for mutant in chosen}:
        print(f"there is no such mutant: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    with ExitStack() as servers:
        server_url = _server_url(servers, chosen)
        tests = sorted({mutant.caught_by for mutant in chosen})
        code, output = run_tests(tests, SOURCE, server_url=server_url, limit_s=LIMIT_S * len(tests))
        if code != 0:
            print(f"the tests fail on the source as it is\n{shortened(output)}", file=sys.stderr)
            return 1
        findings = _try_all(chosen, server_url)
    survivors = [finding for finding in findings if not finding.noticed]
    print(f"{len(findings) - len(survivors)} of {len(findings)} mutants were noticed")
    return 1 if survivors else 0


def _server_url(servers: ExitStack, chosen: list[Mutant]) -> str | None:
    """One server for all that need one."""
    if not any("postgres" in mutant.caught_by for mutant in chosen) or given_server() is not None:
        return None
    return servers.enter_context(PostgresServer(max_connections=100)).admin_url


def _try_all(chosen: list[Mutant], server_url: str | None) -> list[Finding]:
    findings = []
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        trying = [pool.submit(try_out, mutant, server_url=server_url) for mutant in chosen]
        for done in as_completed(trying):
            finding = done.result()
            findings.append(finding)
            word = "noticed" if finding.noticed else "SURVIVED"
            print(f"{word:8} {finding.mutant.name} ({finding.took_s:.0f} s)", flush=True)
            if not finding.noticed:
                print(shortened(finding.why), flush=True)
    return findings


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
