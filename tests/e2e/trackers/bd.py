"""A stand-in for ``bd`` that answers as the real one does: JSON on standard output, text on the other, exit status 1.

Its issues stand in ``issues.json`` of the folder where it runs; ``mode`` there says how it fails.
"""

# ruff: noqa: T201 - it is a program

import json
import os
import signal
import sys
import time

FILE = "issues.json"
BUILT_IN = ["open", "in_progress", "blocked", "deferred", "closed", "pinned", "hooked"]


def main(argv):
    with open(FILE) as file:  # noqa: PTH123 - it starts in half the time without pathlib
        state = json.load(file)
    end = argv.index("--")
    options, values = argv[:end], argv[end + 1 :]
    mode = state.get("mode", "")
    is_read = argv[0] == "show" or (argv[0] == "comments" and argv[1] != "add")
    if mode in {"no-workspace", "no-binary"} or (mode and not is_read):
        fail_as(mode)
    flags = dict(option[2:].partition("=")[::2] for option in options if option.startswith("--"))
    words = [option for option in options if not option.startswith("--")]
    if not values:
        values = [state["last_touched"]]  # what bd does without an id
    id = values[0]
    known = [issue for issue in state["issues"] if issue["id"].startswith(id)]
    if not known:
        missing(words, id)
    issue = known[0]
    answer = act(words, flags, values, issue)
    state["last_touched"] = issue["id"]
    with open(FILE, "w") as file:  # noqa: PTH123 - as above
        json.dump(state, file)
    print(json.dumps({"schema_version": 1, "data": answer} if state.get("envelope") else answer, indent=2))
    if mode == "killed-after" and not is_read:
        sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGKILL)


def act(words, flags, values, issue):
    shown = {name: issue[name] for name in ("id", "title", "status")}
    if words == ["show"]:
        return [shown]
    if words == ["comments"]:
        return issue["comments"]
    if words == ["comments", "add"]:
        comment = {"id": str(len(issue["comments"])), "author": flags["actor"], "text": values[1]}
        issue["comments"].append(comment)
        return comment
    if words == ["update"]:
        status = flags["status"]
        if status not in BUILT_IN:
            fail(f'invalid status "{status}" (built-in: {", ".join(BUILT_IN)}; no custom statuses configured)')
        issue["status"] = status
    if words == ["close"]:
        if issue["blocked_by"]:
            why = f"blocked by {issue['blocked_by']} (use --force to override)"
            print(f"cannot close {issue['id']}: {why}", file=sys.stderr)
            sys.exit(1)
        issue["status"], issue["reason"] = "closed", flags.get("reason", "")
    return [{**shown, "status": issue["status"]}]


def missing(words, id):
    if words[0] == "update":
        print(f"Issue {id} not found", file=sys.stderr)
        sys.exit(1)
    fail(f'no issue found matching "{id}"')


def fail(message, code=1):
    print(json.dumps({"error": message, "schema_version": 1}, indent=2))
    sys.exit(code)


def fail_as(mode):
    if mode == "hang":
        time.sleep(60)
    elif mode == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif mode == "frozen":
        print("ERROR: workspace is frozen for migration.", file=sys.stderr)
        sys.exit(14)
    elif mode == "read-only":
        print("Error: operation 'comment add' is not allowed in read-only mode", file=sys.stderr)
        sys.exit(1)
    elif mode == "no-workspace":
        fail("no active beads workspace found")
    elif mode == "no-binary":
        print("bd binary not found", file=sys.stderr)
        sys.exit(1)
    elif mode == "locked":
        fail("database is locked by another process")
    elif mode == "broken":
        print("panic: runtime error: index out of range", file=sys.stderr)
        sys.exit(2)
    elif mode == "no-json":
        print("Closed.")
        sys.exit(0)
    elif mode == "odd-json":
        print('{"closed": true}')
        sys.exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
