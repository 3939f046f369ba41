//! The words that are retired, what is said now, and where.

/// One row: words that are no longer used, and the one that is.
#[derive(Debug)]
pub(crate) struct Retired {
    pub(crate) words: &'static [&'static str],
    pub(crate) now: &'static str,
    pub(crate) form: Form,
    /// Parts of paths; the row counts in files whose path has one of them. Empty: everywhere.
    pub(crate) only: &'static [&'static str],
    /// Parts of paths; the row does not count in files whose path has one of them.
    pub(crate) not_in: &'static [&'static str],
    /// Phrases in which the word is right.
    pub(crate) except: &'static [&'static str],
}

/// Where a word counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// In prose, in strings and as a part of any identifier, in singular and plural.
    Word,
    /// As the whole name of a type (of a module too, if the row has it in small letters), where it is declared,
    /// and between back quotes in documents.
    Name,
}

const fn word(words: &'static [&'static str], now: &'static str) -> Retired {
    Retired { words, now, form: Form::Word, only: &[], not_in: &[], except: &[] }
}

const fn name(words: &'static [&'static str], now: &'static str, only: &'static [&'static str]) -> Retired {
    Retired { words, now, form: Form::Name, only, not_in: &[], except: &[] }
}

/// Tests and their tools.
const IN_TESTS: &[&str] = &["/tests/", "/tests.rs", "testing/"];
/// Where something is decided.
const DECISIONS: &[&str] = &["crates/core/", "crates/controllers/", "clouds/", "docs/"];
/// The decisions and the controllers.
const CONTROLLERS: &[&str] = &["crates/core/", "crates/controllers/"];
/// Where providers are made and chosen.
const PROVIDERS: &[&str] =
    &["crates/core/", "crates/manager/", "crates/cloudberth/", "clouds/", "testing/", "docs/"];

pub(crate) const RETIRED: &[Retired] = &[
    word(&["Herald"], "EventRecorder"),
    name(&["Occurrence"], "Event", &[]),
    word(&["Crew"], "WorkerPool"),
    word(&["Desk"], "ControllerContext"),
    name(&["Team"], "ControllerSet", &[]),
    name(&["About"], "ObjectRef", &["crates/runtime/", "crates/controllers/"]),
    name(&["Offer"], "ProviderFactory", PROVIDERS),
    name(&["Opening"], "ProviderContext", &["crates/manager/", "crates/cloudberth/", "clouds/", "docs/"]),
    name(&["Opened"], "Result", PROVIDERS),
    word(&["ClaimBook"], "LockTable"),
    name(&["Claim"], "LockKey, NodeOwner or LeaderClaim", &[]),
    word(&["Roster"], "Assignments"),
    name(&["Standing"], "Assignment, ListingTrust or ObservedBalancer", &[]),
    name(&["Wish"], "Spec", &[]),
    name(&["Want"], "Desired", &[]),
    name(&["Seen"], "Observed", DECISIONS),
    name(&["Act"], "Action", DECISIONS),
    word(&["Suspect"], "NodeFacts"),
    name(&["Sentence"], "DeletionDecision", &[]),
    word(&["Ward"], "TrackedNodes"),
    name(&["Patient", "Patients"], "TrackedNodes", &[]),
    name(&["Page"], "ServiceWriter", CONTROLLERS),
    word(&["Errand"], "SyncReason"),
    word(&["Stumble", "stumbled"], "Interrupted"),
    name(&["Held"], "LockGuard", CONTROLLERS),
    name(&["Witness"], "AccountCheck", CONTROLLERS),
    word(&["Scribe"], "ServiceRecorder"),
    name(&["Told"], "EventDedup or WatchEvent", &["crates/"]),
    name(&["Rest"], "TurnEnd", &["crates/"]),
    name(&["After"], "Requeue", CONTROLLERS),
    word(&["Rehearsal", "rehearse", "rehearsed", "rehearsing"], "dry run"),
    word(&["foretell", "foretold"], "dry run"),
    word(&["Manners"], "SimSettings"),
    word(&["Sky"], "SimulatedCloud"),
    word(&["Dice"], "Random"),
    Retired {
        words: &["machine"],
        now: "instance",
        form: Form::Word,
        only: &["crates/core/", "crates/controllers/", "clouds/", "docs/", "README.md", "CONTRIBUTING.md"],
        // The API of Cloudlycke calls them machines, and its provider, tests and pages speak of that API.
        not_in: &["cloudlycke", "load-balancers-for-kind"],
        // The computer that a program runs on is a machine; event reasons and annotations keep their names.
        except: &[
            "state machine",
            "virtual machine",
            "this machine",
            "busy machine",
            "machine-readable",
            "machine-is-gone",
            "MachineListingDoubtful",
            "MachineNotFound",
            "MACHINE_IS_GONE",
        ],
    },
    Retired {
        words: &["stage", "scene", "ground", "harness"],
        now: "fixture",
        form: Form::Name,
        only: IN_TESTS,
        not_in: &[],
        except: &[],
    },
    Retired { words: &["testkit"], now: "fixture", form: Form::Name, only: &[], not_in: &[], except: &[] },
];
