//! Types that a single flag has.

use std::collections::BTreeMap;

use cloudberth_core::decide::lifecycle::Share;

use super::value::{Value, truth};
use crate::{gates, program};

/// `--feature-gates`: what was asked for, gate by gate. All of them are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GateList(pub BTreeMap<String, bool>);

impl Value for GateList {
    const TYPE: &'static str = "mapStringBool";

    fn read(text: &str) -> Result<Self, String> {
        let (mut asked, mut wrong) = (BTreeMap::new(), Vec::new());
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            match gate(pair) {
                Ok((gate, on)) => drop(asked.insert(gate, on)),
                Err(why) => wrong.push(why),
            }
        }
        if wrong.is_empty() { Ok(Self(asked)) } else { Err(wrong.join("; ")) }
    }

    fn again(&mut self, next: Self) {
        self.0.extend(next.0);
    }

    fn show(&self) -> String {
        self.0.iter().map(|(gate, on)| format!("{gate}={on}")).collect::<Vec<_>>().join(",")
    }
}

fn gate(pair: &str) -> Result<(String, bool), String> {
    let (gate, value) = pair
        .split_once('=')
        .ok_or_else(|| format!("{pair:?} lacks its value; write {pair}=true or {pair}=false"))?;
    let (gate, value) = (gate.trim(), value.trim());
    let on = truth(value).ok_or_else(|| format!("{gate} is {value:?}; it must be true or false"))?;
    gates::check(gate, on)?;
    Ok((gate.to_owned(), on))
}

/// `--v`: how much is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level(pub u32);

impl Value for Level {
    const TYPE: &'static str = "Level";

    fn read(text: &str) -> Result<Self, String> {
        level(text).map(Self).ok_or_else(|| "it must be a whole number from 0 to 2147483647".to_owned())
    }

    fn show(&self) -> String {
        self.0.to_string()
    }
}

fn level(text: &str) -> Option<u32> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|level| digits && *level <= i32::MAX.unsigned_abs())
}

/// `--vmodule`: levels for parts of the program, in the order given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VModule(pub Vec<(String, Level)>);

impl Value for VModule {
    const TYPE: &'static str = "pattern=N,...";

    fn read(text: &str) -> Result<Self, String> {
        let entry = |pair: &str| {
            let (pattern, text) = pair.split_once('=')?;
            Some((pattern.to_owned(), Level(level(text)?))).filter(|_| !pattern.is_empty())
        };
        text.split(',')
            .filter(|pair| !pair.is_empty())
            .map(|pair| {
                entry(pair)
                    .ok_or_else(|| format!("{pair:?} must be a pattern and a level, such as service=4"))
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }

    fn show(&self) -> String {
        let one = |(pattern, level): &(String, Level)| format!("{pattern}={}", level.0);
        self.0.iter().map(one).collect::<Vec<_>>().join(",")
    }
}

/// A number of bytes as Kubernetes writes quantities: `64Ki`, `1M`. It is shown as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quantity {
    text: String,
    /// The bytes, rounded up.
    pub bytes: u64,
}

impl Quantity {
    /// No bytes at all.
    pub fn zero() -> Self {
        Self { text: "0".to_owned(), bytes: 0 }
    }
}

const SUFFIXES: [(&str, u64); 14] = [
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("Pi", 1 << 50),
    ("Ei", 1 << 60),
    ("k", 1_000),
    ("K", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
    ("P", 1_000_000_000_000_000),
    ("E", 1_000_000_000_000_000_000),
    ("", 1),
];

impl Value for Quantity {
    const TYPE: &'static str = "quantity";

    fn read(text: &str) -> Result<Self, String> {
        let bytes = SUFFIXES.iter().find_map(|(suffix, scale)| {
            let number = text.strip_suffix(suffix)?;
            let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
            let digits =
                |text: &str| !text.is_empty() && text.len() < 16 && text.bytes().all(|b| b.is_ascii_digit());
            if !digits(whole) || !digits(part) {
                return None;
            }
            let scale = u128::from(*scale);
            let tenths = 10_u128.pow(part.len().try_into().ok()?);
            let bytes =
                whole.parse::<u128>().ok()? * scale + (part.parse::<u128>().ok()? * scale).div_ceil(tenths);
            bytes.try_into().ok()
        });
        bytes
            .map(|bytes| Self { text: text.to_owned(), bytes })
            .ok_or_else(|| "it must be a number of bytes, such as 4096, 64Ki or 1M".to_owned())
    }

    fn show(&self) -> String {
        self.text.clone()
    }
}

/// `--version`: what is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum VersionFlag {
    /// Nothing.
    #[default]
    No,
    /// To print the version and stop.
    Print,
    /// To print everything known about the build and stop.
    Raw,
    /// To run and to report this version.
    Report(String),
}

impl Value for VersionFlag {
    const TYPE: &'static str = "version";
    const ALONE: Option<&'static str> = Some("true");

    fn read(text: &str) -> Result<Self, String> {
        match (text, truth(text)) {
            ("raw", _) => Ok(Self::Raw),
            (_, Some(true)) => Ok(Self::Print),
            (_, Some(false)) => Ok(Self::No),
            _ if text.starts_with('v') => {
                program::check_version(text).map(|()| Self::Report(text.to_owned()))
            }
            _ => Err("it must be true, false, raw or a version such as v1.2.3".to_owned()),
        }
    }

    fn show(&self) -> String {
        match self {
            Self::No => "false".to_owned(),
            Self::Print => "true".to_owned(),
            Self::Raw => "raw".to_owned(),
            Self::Report(version) => version.clone(),
        }
    }
}

impl Value for Share {
    const TYPE: &'static str = "intOrPercent";

    fn read(text: &str) -> Result<Self, String> {
        text.parse()
            .map_err(|_| "it must be a number of nodes, such as 3, or a share from 1% to 100%".to_owned())
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_are_read_and_added_up() {
        let mut gates = GateList::read("AllAlpha=true, ContextualLogging=0").unwrap();
        gates.again(GateList::read("AllAlpha=f,").unwrap());
        assert_eq!(gates.show(), "AllAlpha=false,ContextualLogging=false");
        let table = [
            ("AllAlpha", "\"AllAlpha\" lacks its value; write AllAlpha=true or AllAlpha=false"),
            ("AllAlpha=maybe", "AllAlpha is \"maybe\"; it must be true or false"),
            ("A=true,AllBeta=true,B=1", "unrecognized feature gate: A; unrecognized feature gate: B"),
            ("AllAlfa=true", "unrecognized feature gate: AllAlfa; did you mean AllAlpha?"),
        ];
        for (text, want) in table {
            assert_eq!(GateList::read(text).unwrap_err(), want);
        }
    }

    #[test]
    fn levels_are_small_whole_numbers() {
        assert_eq!(Level::read("4"), Ok(Level(4)));
        for wrong in ["", "-1", "+1", "4.0", "2147483648", "high"] {
            assert!(Level::read(wrong).is_err(), "{wrong}");
        }
        let modules = VModule::read("service=4,,node*=2").unwrap();
        assert_eq!(modules.show(), "service=4,node*=2");
        for wrong in ["service", "=4", "service=", "service=high", "a=1,b"] {
            assert!(VModule::read(wrong).unwrap_err().contains("such as service=4"), "{wrong}");
        }
    }

    #[test]
    fn quantities_count_bytes() {
        let table = [
            ("0", Some(0)),
            ("4096", Some(4_096)),
            ("64Ki", Some(65_536)),
            ("1.5Mi", Some(1_572_864)),
            ("1k", Some(1_000)),
            ("0.0001k", Some(1)),
            ("16Ei", None),
            ("1.", None),
            (".5Mi", None),
            ("1KB", None),
            ("-1", None),
            ("", None),
        ];
        for (text, want) in table {
            assert_eq!(Quantity::read(text).ok().map(|quantity| quantity.bytes), want, "{text}");
        }
        assert_eq!(Quantity::read("64Ki").unwrap().show(), "64Ki");
    }

    #[test]
    fn a_version_can_be_printed_or_claimed() {
        let own = program::VERSION;
        assert_eq!(VersionFlag::read("raw"), Ok(VersionFlag::Raw));
        assert_eq!(VersionFlag::read("true"), Ok(VersionFlag::Print));
        assert_eq!(VersionFlag::read("0"), Ok(VersionFlag::No));
        assert_eq!(VersionFlag::read(own), Ok(VersionFlag::Report(own.to_owned())));
        assert!(VersionFlag::read("v99.0.0").is_err() && VersionFlag::read("newest").is_err());
    }

    #[test]
    fn a_share_of_the_nodes_is_a_number_or_a_percentage() {
        assert_eq!(Share::read("10%").map(|share| share.show()), Ok("10%".to_owned()));
        assert_eq!(Share::read("3").map(|share| share.show()), Ok("3".to_owned()));
        assert!(Share::read("0%").is_err() && Share::read("few").is_err());
    }
}
