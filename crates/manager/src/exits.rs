//! What the exit codes of the commands that look and tell mean: the table of the reference is written from this one.

use crate::{doctor, lint, orphans, plan};

/// A command and what each of its exit codes means.
#[derive(Clone, Copy, Debug)]
pub struct Exits {
    /// What the command is called.
    pub command: &'static str,
    /// From 0 on.
    pub codes: &'static [(u8, &'static str)],
}

/// Every command whose exit code scripts look at.
pub const EXITS: [Exits; 4] = [
    Exits {
        command: "lint",
        codes: &[
            (lint::EXIT_GOOD, "nothing is refused"),
            (lint::EXIT_REFUSED, "something is refused"),
            (lint::EXIT_USAGE, "the call is wrong, or nothing says which cloud is meant"),
            (lint::EXIT_UNREADABLE, "a file or a setting cannot be read"),
        ],
    },
    Exits {
        command: "doctor",
        codes: &[
            (doctor::EXIT_HEALTHY, "nothing is wrong"),
            (doctor::EXIT_PROBLEMS, "something is wrong, or will be"),
            (doctor::EXIT_USAGE, "the call is wrong"),
            (doctor::EXIT_BLIND, "nothing wrong was seen, and something that matters could not be looked at"),
        ],
    },
    Exits {
        command: "orphans",
        codes: &[
            (orphans::EXIT_NONE, "nothing is left over, or all that was named was deleted"),
            (orphans::EXIT_ORPHANS, "something is left over"),
            (orphans::EXIT_USAGE, "the call is wrong"),
            (orphans::EXIT_UNKNOWN, "it could not be told, or something that was named was not deleted"),
        ],
    },
    Exits {
        command: "plan",
        codes: &[
            (plan::EXIT_NOTHING, "nothing to do"),
            (plan::EXIT_UNKNOWN, "something could not be told, or the flags are wrong"),
            (plan::EXIT_PENDING, "changes are pending"),
        ],
    },
];
