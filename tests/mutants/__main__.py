"""python -m tests.mutants [--record] [NAME …]: switches safeguards off, one after the other, and sees that each is missed.

First the tests that are to notice are run on the source as it is, where they must find nothing. `--record` keeps which
seeds and words it was, for docs/proof.md.
"""

import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack

from tests.mutants.mutant import Mutant
from tests.mutants.running import LIMIT_S, SOURCE, Finding, run_tests, shortened, try_out
from tests.mutants.seen import Sight, read_seen, write_seen
from tests.mutants.table import MUTANTS
from tests.servers.postgres import PostgresServer, given_server

_AT_ONCE = 2


def main(arguments: list[str]) -> int:
    """The exit code: 0 if every mutant was noticed."""
    names = [one for one in arguments if one != "--record"]
    chosen = [mutant for mutant in MUTANTS if not names or mutant.name in names]
    if unknown := set(names) - {mutant.name for mutant in chosen}:
        print(f"there is no such mutant: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    with ExitStack() as servers:
        server_url = _server_url(servers, chosen)
        tests = sorted({mutant.caught_by for mutant in chosen if not mutant.is_simulated})
        if tests:
            code, output = run_tests(tests, SOURCE, server_url=server_url, limit_s=LIMIT_S * len(tests))
            if code != 0:
                print(f"the tests fail on the source as it is\n{shortened(output)}", file=sys.stderr)
                return 1
            print(f"{len(tests)} tests find nothing on the source as it is", flush=True)
        findings = _try_all(chosen, server_url)
    if "--record" in arguments:
        _record(findings)
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
    seen = read_seen()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        trying = []
        for mutant in chosen:
            first_seed = seen[mutant.name].seed if mutant.name in seen else None
            trying.append(pool.submit(try_out, mutant, first_seed=first_seed, server_url=server_url))
        for done in as_completed(trying):
            finding = done.result()
            findings.append(finding)
            _tell(finding)
    return findings


def _tell(finding: Finding) -> None:
    mutant = finding.mutant
    if not finding.noticed:
        print(f"SURVIVED {mutant.name} ({finding.took_s:.0f} s)\n{shortened(finding.why)}", flush=True)
        return
    by = (
        f"{mutant.caught_by}, seed {finding.seed}"
        if mutant.is_simulated
        else mutant.caught_by.rpartition("::")[2]
    )
    print(f"noticed  {mutant.name} ({finding.took_s:.0f} s), {by}: {finding.why}", flush=True)


def _record(findings: list[Finding]) -> None:
    seen = read_seen()
    for finding in findings:
        if finding.noticed:
            seen[finding.mutant.name] = Sight(seed=finding.seed, said=finding.why)
    write_seen({mutant.name: seen[mutant.name] for mutant in MUTANTS if mutant.name in seen})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
