//! What is said about every flag, and how a flag holds its value.

#![allow(missing_docs, reason = "plain data, named after what the flags show")]

use std::fmt;

use super::value::Value;

/// The headings of `--help`, in the order in which they are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    Debugging,
    /// The way from the controllers of another program to this one.
    LeaderMigration,
    Generic,
    CloudNodeController,
    CloudNodeLifecycleController,
    ServiceLbController,
    Webhook,
    WebhookServing,
    SecureServing,
    /// Who a caller of the HTTPS server is.
    Authentication,
    /// What a caller of the HTTPS server may do.
    Authorization,
    /// How the API server is found, and the rest.
    Misc,
    Global,
    Cloudberth,
}

impl Group {
    pub const ALL: [Self; 14] = [
        Self::Debugging,
        Self::LeaderMigration,
        Self::Generic,
        Self::CloudNodeController,
        Self::CloudNodeLifecycleController,
        Self::ServiceLbController,
        Self::Webhook,
        Self::WebhookServing,
        Self::SecureServing,
        Self::Authentication,
        Self::Authorization,
        Self::Misc,
        Self::Global,
        Self::Cloudberth,
    ];

    /// The group's name, as its heading begins.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Debugging => "Debugging",
            Self::LeaderMigration => "Leader-migration",
            Self::Generic => "Generic",
            Self::CloudNodeController => "Cloud-node-controller",
            Self::CloudNodeLifecycleController => "Cloud-node-lifecycle-controller",
            Self::ServiceLbController => "Service-lb-controller",
            Self::Webhook => "Webhook",
            Self::WebhookServing => "Webhook serving",
            Self::SecureServing => "Secure serving",
            Self::Authentication => "Authentication",
            Self::Authorization => "Authorization",
            Self::Misc => "Misc",
            Self::Global => "Global",
            Self::Cloudberth => "Cloudberth",
        }
    }
}

/// How much a flag still does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    Works,
    /// Left out, cloudberth finds the right value by itself; given, it is the most that is used.
    Ceiling,
    /// Accepted, so that old manifests go on working. The text says why nothing comes of it.
    NoEffect(&'static str),
    /// Like [`Note::NoEffect`], and not shown in `--help` either.
    Deprecated(&'static str),
}

/// A flag, apart from its type and value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlagInfo {
    /// The name without the dashes in front.
    pub name: &'static str,
    pub group: Group,
    pub note: Note,
    pub help: &'static str,
}

impl FlagInfo {
    /// The letter that may be written instead of the name.
    pub fn letter(&self) -> Option<char> {
        match self.name {
            "help" => Some('h'),
            "v" => Some('v'),
            _ => None,
        }
    }

    /// The flag as messages show it: `--name`, or `-x, --name`.
    pub fn shown(&self) -> String {
        self.letter()
            .map_or_else(|| format!("--{}", self.name), |letter| format!("-{letter}, --{}", self.name))
    }
}

/// A flag with its value.
#[derive(Clone, Debug)]
pub struct Setting<T> {
    /// What is said about the flag.
    pub about: FlagInfo,
    value: T,
    default: T,
    given: bool,
}

impl<T: Value> Setting<T> {
    pub(super) fn new(about: FlagInfo, default: T) -> Self {
        Self { about, value: default.clone(), default, given: false }
    }

    pub const fn get(&self) -> &T {
        &self.value
    }

    pub fn given(&self) -> Option<&T> {
        self.given.then_some(&self.value)
    }

    pub const fn default(&self) -> &T {
        &self.default
    }

    /// Changes the default, and with it the value that nobody gave.
    pub(crate) fn preset(&mut self, default: T) {
        if !self.given {
            self.value = default.clone();
        }
        self.default = default;
    }

    /// The flag as messages show it.
    pub fn flag(&self) -> String {
        format!("--{}", self.about.name)
    }
}

/// A flag of whatever type.
pub trait AnyFlag: fmt::Debug {
    fn about(&self) -> &FlagInfo;

    /// Whether somebody gave a value.
    fn is_given(&self) -> bool;

    /// Its type as `--help` names it; nothing for a switch.
    fn type_name(&self) -> &'static str;

    /// What it means when it stands alone; `None` if a value has to follow.
    fn alone(&self) -> Option<&'static str>;

    fn text(&self) -> String;

    fn default_text(&self) -> String;

    /// The default as `--help` shows it; nothing where it says nothing.
    fn default_shown(&self) -> Option<String>;

    /// Reads a value. The error says what is expected instead; the value stays as it was.
    fn set(&mut self, text: &str) -> Result<(), String>;
}

impl<T: Value + fmt::Debug> AnyFlag for Setting<T> {
    fn about(&self) -> &FlagInfo {
        &self.about
    }

    fn is_given(&self) -> bool {
        self.given
    }

    fn type_name(&self) -> &'static str {
        T::TYPE
    }

    fn alone(&self) -> Option<&'static str> {
        T::ALONE
    }

    fn text(&self) -> String {
        self.value.show()
    }

    fn default_text(&self) -> String {
        self.default.show()
    }

    fn default_shown(&self) -> Option<String> {
        self.default.show_default()
    }

    fn set(&mut self, text: &str) -> Result<(), String> {
        let next = T::read(text)?;
        if self.given {
            self.value.again(next);
        } else {
            self.value = next;
        }
        self.given = true;
        Ok(())
    }
}

/// Makes the struct of all flags from a table, so that a flag cannot be declared without being parsed, shown in
/// `--help`, documented and readable by type.
macro_rules! flags {
    ($( $group:ident { $( $field:ident: $type:ty = $default:expr, $name:literal, $note:expr, $help:literal; )* } )*) => {
        /// Every flag with its value.
        #[derive(Clone, Debug)]
        pub struct Flags {
            $($( #[doc = concat!("`--", $name, "`")] pub $field: Setting<$type>, )*)*
        }

        impl Default for Flags {
            fn default() -> Self {
                Self {
                    $($( $field: Setting::new(
                        FlagInfo { name: $name, group: Group::$group, note: $note, help: $help },
                        $default,
                    ), )*)*
                }
            }
        }

        impl Flags {
            /// Every flag, group by group as in `--help`.
            pub fn all(&self) -> Vec<&dyn AnyFlag> {
                vec![$($( &self.$field, )*)*]
            }

            /// Every flag, to change it.
            pub(super) fn all_mut(&mut self) -> Vec<&mut dyn AnyFlag> {
                vec![$($( &mut self.$field, )*)*]
            }
        }

        #[cfg(test)]
        pub(super) const FIELDS: &[(&str, &str)] = &[$($( (stringify!($field), $name), )*)*];
    };
}
pub(super) use flags;
