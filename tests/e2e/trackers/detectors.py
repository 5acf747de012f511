"""A detector for Roundup: an issue is never moved from where it is to ``done-cbb``."""

from roundup.exceptions import Reject


def check_move(db, _, node, new):
    """Refuse the move."""
    if "status" in new and db.status.get(new["status"], "name") == "done-cbb":
        raise Reject("no issue may be moved to done-cbb")


def init(db):
    """Have each change of an issue checked."""
    db.issue.audit("set", check_move)
