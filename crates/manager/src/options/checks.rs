//! Where mistakes and remarks are gathered while options are made from flags.

use std::{fmt, path::PathBuf, time::Duration};

use cloudberth_core::error::Error;

use crate::flags::{AnyFlag, Flags, GoDuration, Note, Setting};

/// Something that a user should know and that is no mistake. It is worth one line in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The flag that it is about, without dashes.
    pub flag: &'static str,
    pub text: String,
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--{} {}", self.flag, self.text)
    }
}

#[derive(Debug, Default)]
pub(super) struct Checks {
    pub(super) mistakes: Vec<Error>,
    pub(super) notices: Vec<Notice>,
}

impl Checks {
    /// Adds a notice for each given flag that has no effect.
    pub(super) fn without_effect(&mut self, flags: &Flags) {
        for flag in flags.all().into_iter().filter(|flag| flag.is_given()) {
            let text = match flag.about().note {
                Note::Works | Note::Ceiling => continue,
                Note::NoEffect(why) => format!("has no effect: {why}"),
                Note::Deprecated(why) => format!("is deprecated and has no effect: {why}"),
            };
            self.notices.push(Notice { flag: flag.about().name, text });
        }
    }

    /// Adds a mistake about a flag: what it is, and what it must be.
    pub(super) fn wrong(&mut self, flag: &dyn AnyFlag, must: impl fmt::Display) {
        let text = format!("--{} is {:?}; {must}", flag.about().name, flag.text());
        self.mistakes.push(Error::user_input(text));
    }

    /// Adds a remark about a flag.
    pub(super) fn notice(&mut self, flag: &dyn AnyFlag, text: impl Into<String>) {
        self.notices.push(Notice { flag: flag.about().name, text: text.into() });
    }

    /// The duration, if it is not negative; else its default.
    pub(super) fn duration(&mut self, flag: &Setting<GoDuration>) -> Duration {
        flag.get().to_std().unwrap_or_else(|| {
            self.wrong(flag, "it must not be negative");
            flag.default().to_std().unwrap_or_default()
        })
    }

    /// The duration, if there is any; else its default. A loop without a pause would do nothing else.
    pub(super) fn period(&mut self, flag: &Setting<GoDuration>) -> Duration {
        flag.get().to_std().filter(|span| !span.is_zero()).unwrap_or_else(|| {
            self.wrong(flag, "it must be more than 0s");
            flag.default().to_std().unwrap_or_default()
        })
    }

    /// The port, if it is one; 0 means none.
    pub(super) fn port(&mut self, flag: &Setting<i64>) -> u16 {
        u16::try_from(*flag.get()).unwrap_or_else(|_| {
            self.wrong(flag, "it must be from 0 to 65535, where 0 means not to serve");
            u16::try_from(*flag.default()).unwrap_or_default()
        })
    }
}

/// The file that a flag names; empty means none.
pub(super) fn file(flag: &Setting<String>) -> Option<PathBuf> {
    some(flag).map(PathBuf::from)
}

/// The text of a flag, if there is any.
pub(super) fn some(flag: &Setting<String>) -> Option<String> {
    Some(flag.get().clone()).filter(|text| !text.is_empty())
}
