"""Problems of a sandbox as a whole: its forks and its tasks."""

from billfold.platform.problems.problem import Problem

SANDBOX = (
    Problem(
        "sandbox-busy",
        409,
        "The sandbox is at another task",
        meaning="One fork, rewind, reset or scenario runs at a time, and waits for requests and commands under way.",
        remedy="Read `GET /api/v1/sandbox/tasks/` until nothing is RUNNING; freeze the clock if it is moving. Then send"
        " the request again under a new key.",
        retryable=True,
    ),
    Problem(
        "fork-exists",
        409,
        "There is a fork of this name",
        meaning="A fork keeps what it holds; another one needs another name.",
        remedy="Choose another name, or remove the fork first.",
    ),
    Problem(
        "sandbox-of-another-partner",
        403,
        "Another partner started this sandbox",
        meaning="The clock, forks, resets and scenarios concern every partner of the bank. They belong to the first.",
        remedy="Ask whoever started the sandbox, or start one of your own.",
    ),
    Problem(
        "fork-needed",
        409,
        "This fork is needed",
        meaning="A reset of the sandbox returns to the fork `opening`.",
        remedy="Keep it. A fresh sandbox makes another.",
    ),
    Problem(
        "too-many-forks",
        409,
        "There are too many forks",
        meaning="A sandbox has at most 20 forks.",
        remedy="Remove one that is no longer needed.",
    ),
    Problem(
        "fork-disk-full",
        409,
        "There is no room for a copy of the bank",
        meaning="A fork and a rewind copy the database and the files of the bank, and leave 256 MB of the disk free.",
        remedy="Remove forks, or make room on the disk.",
    ),
    Problem(
        "fork-not-possible",
        409,
        "This bank cannot be copied",
        meaning="The database server does not let the bank copy its database, or documents are kept in a bucket.",
        remedy="Look at `detail`; the embedded database and a folder for documents can always be copied.",
    ),
)
