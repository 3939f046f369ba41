//! Label selectors, as Kubernetes writes them: `env=prod,tier!=db,zone in (a,b),!gpu,ssd`.

use std::{fmt, str::FromStr};

use crate::{
    annotation::By,
    error::{Error, Result},
    label::{LabelKey, LabelValue},
    view::Pairs,
};

/// A label selector. The empty one selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    requirements: Vec<Requirement>,
}

impl Selector {
    /// The kind of an annotation that holds a selector.
    pub const KIND: By<Self> =
        By::new("a label selector", |text| text.parse().map_err(|why: Error| why.message().to_owned()));
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    Exists,
    Missing,
    In(Vec<String>),
    NotIn(Vec<String>),
    Above(i64),
    Below(i64),
}

impl Selector {
    /// Whether every requirement holds. A label that is not there is not equal to anything.
    pub fn matches(&self, labels: &Pairs) -> bool {
        self.requirements.iter().all(|requirement| requirement.test.holds(labels.get(&requirement.key)))
    }
}

impl Test {
    fn holds(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|text| text.parse::<i64>().ok());
        match self {
            Self::Exists => value.is_some(),
            Self::Missing => value.is_none(),
            Self::In(list) => value.is_some_and(|value| list.iter().any(|listed| listed == value)),
            Self::NotIn(list) => value.is_none_or(|value| list.iter().all(|listed| listed != value)),
            Self::Above(limit) => number().is_some_and(|number| number > *limit),
            Self::Below(limit) => number().is_some_and(|number| number < *limit),
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, Requirement { key, test }) in self.requirements.iter().enumerate() {
            f.write_str(if at == 0 { "" } else { "," })?;
            match test {
                Test::Exists => f.write_str(key),
                Test::Missing => write!(f, "!{key}"),
                Test::In(list) if list.len() == 1 => write!(f, "{key}={}", list.join(",")),
                Test::NotIn(list) if list.len() == 1 => write!(f, "{key}!={}", list.join(",")),
                Test::In(list) => write!(f, "{key} in ({})", list.join(",")),
                Test::NotIn(list) => write!(f, "{key} notin ({})", list.join(",")),
                Test::Above(limit) => write!(f, "{key}>{limit}"),
                Test::Below(limit) => write!(f, "{key}<{limit}"),
            }?;
        }
        Ok(())
    }
}

impl FromStr for Selector {
    type Err = Error;

    /// Reads a selector; the error shows the whole text and what is wrong with it.
    fn from_str(text: &str) -> Result<Self> {
        let mut parser = Parser { tokens: tokens(text), at: 0 };
        match parser.selector() {
            Ok(requirements) => Ok(Self { requirements }),
            Err(why) => Err(Error::user_input(format!("unable to parse label selector {text:?}: {why}"))),
        }
    }
}

/// Words, and signs of one or two characters.
fn tokens(text: &str) -> Vec<&str> {
    let sign = |c: char| "=!(),<>".contains(c);
    let mut out = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("==") || rest.starts_with("!=") {
            2
        } else if sign(first) {
            1
        } else {
            rest.find(|c: char| sign(c) || c.is_whitespace()).unwrap_or(rest.len())
        };
        let (token, after) = rest.split_at(length);
        out.push(token);
        rest = after.trim_start();
    }
    out
}

struct Parser<'a> {
    tokens: Vec<&'a str>,
    at: usize,
}

type Parsed<T> = Result<T, String>;

impl<'a> Parser<'a> {
    /// The next token; empty at the end.
    fn peek(&self) -> &'a str {
        self.tokens.get(self.at).copied().unwrap_or_default()
    }

    fn next(&mut self) -> &'a str {
        let token = self.peek();
        self.at += 1;
        token
    }

    /// Takes the next token if it is this one.
    fn took(&mut self, token: &str) -> bool {
        let hit = self.peek() == token;
        self.at += usize::from(hit);
        hit
    }

    fn selector(&mut self) -> Parsed<Vec<Requirement>> {
        let mut out = Vec::new();
        if self.tokens.is_empty() {
            return Ok(out);
        }
        loop {
            out.push(self.requirement()?);
            match self.next() {
                "" => return Ok(out),
                "," => {}
                other => return Err(format!("found {other:?} where ',' or the end should be")),
            }
        }
    }

    fn requirement(&mut self) -> Parsed<Requirement> {
        let missing = self.took("!");
        let key = self.key()?;
        let test = if missing { Test::Missing } else { self.test()? };
        Ok(Requirement { key, test })
    }

    fn key(&mut self) -> Parsed<String> {
        let word = self.next();
        LabelKey::new(word).map(|key| key.to_string()).map_err(|error| error.to_string())
    }

    /// What follows the key; a key alone asks for the label to be there.
    fn test(&mut self) -> Parsed<Test> {
        match self.peek() {
            "" | "," => return Ok(Test::Exists),
            _ => {}
        }
        match self.next() {
            "=" | "==" => Ok(Test::In(vec![self.exact()?])),
            "!=" => Ok(Test::NotIn(vec![self.exact()?])),
            "in" => Ok(Test::In(self.list()?)),
            "notin" => Ok(Test::NotIn(self.list()?)),
            ">" => Ok(Test::Above(self.number()?)),
            "<" => Ok(Test::Below(self.number()?)),
            other => Err(format!("{other:?} is not one of '=', '==', '!=', 'in', 'notin', '>', '<'")),
        }
    }

    /// The value after `=`; nothing at all is the empty value.
    fn exact(&mut self) -> Parsed<String> {
        let word = if matches!(self.peek(), "" | ",") { "" } else { self.next() };
        value(word)
    }

    /// `(a,b)`; an entry may be empty, the list may not.
    fn list(&mut self) -> Parsed<Vec<String>> {
        if !self.took("(") {
            return Err(format!("found {:?} where '(' should be", self.peek()));
        }
        if self.peek() == ")" {
            return Err("the list of values is empty".to_owned());
        }
        let mut out = Vec::new();
        loop {
            let word = if matches!(self.peek(), "," | ")") { "" } else { self.next() };
            out.push(value(word)?);
            match self.next() {
                ")" => return Ok(out),
                "," => {}
                other => return Err(format!("found {other:?} where ',' or ')' should be")),
            }
        }
    }

    fn number(&mut self) -> Parsed<i64> {
        let word = self.next();
        word.parse().map_err(|_| format!("{word:?} is not a whole number"))
    }
}

fn value(word: &str) -> Parsed<String> {
    LabelValue::new(word).map(|value| value.to_string()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn labels(list: &[(&str, &str)]) -> Pairs {
        list.iter().copied().collect()
    }

    #[test]
    fn what_is_selected() {
        let node = labels(&[
            ("env", "prod"),
            ("example.com/tier", "web"),
            ("cores", "8"),
            ("empty", ""),
            ("in", "x"),
        ]);
        let table = [
            ("", true),
            ("  ", true),
            ("env=prod", true),
            ("env==prod", true),
            (" env = prod ", true),
            ("env=dev", false),
            ("zone=a", false),
            ("env!=dev", true),
            ("env!=prod", false),
            ("zone!=a", true),
            ("env in (prod,dev)", true),
            ("env in (dev, test)", false),
            ("env in(prod)", true),
            ("zone in (a)", false),
            ("env notin (dev)", true),
            ("env notin (dev,prod)", false),
            ("zone notin (a)", true),
            ("env", true),
            ("zone", false),
            ("!zone", true),
            ("! zone", true),
            ("!env", false),
            ("example.com/tier=web", true),
            ("env=prod,example.com/tier=web", true),
            ("env=prod,example.com/tier=db", false),
            ("env=dev,example.com/tier=web", false),
            ("env=prod,!zone,cores", true),
            ("empty=", true),
            ("empty=,env", true),
            ("empty!=", false),
            ("empty in (,a)", true),
            ("env in (prod,)", true),
            ("env in (,)", false),
            ("in=x", true),
            ("in in (x)", true),
            ("env=in", false),
            ("cores>7", true),
            ("cores>8", false),
            ("cores<9", true),
            ("cores<8", false),
            ("cores > -1", true),
            ("env>1", false),
            ("zone<1", false),
        ];
        for (text, want) in table {
            let selector: Selector = text.parse().unwrap();
            assert_eq!(selector.matches(&node), want, "{text:?}");
            let again: Selector = selector.to_string().parse().unwrap();
            assert_eq!(again, selector, "{text:?} printed as {selector}");
        }
    }

    #[test]
    fn what_is_no_selector_is_refused_with_its_text() {
        let table = [
            ("invalid===syntax", "\"=\" is not a label value"),
            ("a,", "\"\" is not a label key"),
            (",a", "\",\" is not a label key"),
            ("a,,b", "\",\" is not a label key"),
            ("=a", "\"=\" is not a label key"),
            ("a b", "\"b\" is not one of"),
            ("a=b c", "found \"c\" where ',' or the end should be"),
            ("!a=b", "found \"=\" where ',' or the end should be"),
            ("!", "\"\" is not a label key"),
            ("a in b", "found \"b\" where '(' should be"),
            ("a in", "found \"\" where '(' should be"),
            ("a in ()", "the list of values is empty"),
            ("a in (b", "found \"\" where ',' or ')' should be"),
            ("a in (b c)", "found \"c\" where ',' or ')' should be"),
            ("a in ((b)", "\"(\" is not a label value"),
            ("a>b", "\"b\" is not a whole number"),
            ("a<", "\"\" is not a whole number"),
            ("-a=b", "\"-a\" is not a label key"),
            ("a=b/c", "\"b/c\" is not a label value"),
            ("a!b", "\"!\" is not one of"),
        ];
        for (text, why) in table {
            let error = text.parse::<Selector>().unwrap_err();
            assert!(error.message().contains(&format!("{text:?}")), "{text:?}: {error}");
            assert!(error.message().contains(why), "{text:?}: {error}");
        }
    }

    #[test]
    fn a_selector_is_printed_shortly() {
        let text = "a=x, b==y,c!=z,d in (x,y),e notin (x , y),f in (x),!g,h,i>1,j<2";
        let selector: Selector = text.parse().unwrap();
        assert_eq!(selector.to_string(), "a=x,b=y,c!=z,d in (x,y),e notin (x,y),f=x,!g,h,i>1,j<2");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[a-c=!(),<> in]{0,16}|.{0,16}") {
            if let Ok(selector) = text.parse::<Selector>() {
                let printed = selector.to_string();
                prop_assert_eq!(printed.parse::<Selector>().ok(), Some(selector), "{}", printed);
            }
        }

        #[test]
        fn equal_and_unequal_are_opposites(
            key in "[a-c]", value in "[x-z]?", have in prop::collection::btree_map("[a-c]", "[x-z]?", 0..4)
        ) {
            let have = Pairs::from_iter(&have);
            let equal: Selector = format!("{key}={value}").parse().unwrap();
            let unequal: Selector = format!("{key}!={value}").parse().unwrap();
            prop_assert_eq!(equal.matches(&have), have.get(&key) == Some(value.as_str()));
            prop_assert_ne!(equal.matches(&have), unequal.matches(&have));
        }

        #[test]
        fn every_requirement_counts(
            keys in prop::collection::vec("[a-c]", 1..4), have in prop::collection::btree_map("[a-c]", "x", 0..4)
        ) {
            let have = Pairs::from_iter(&have);
            let all: Selector = keys.join(",").parse().unwrap();
            prop_assert_eq!(all.matches(&have), keys.iter().all(|key| have.contains_key(key)));
        }
    }
}
