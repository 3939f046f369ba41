//! Values of a YAML file, read as what they are meant to be.

use std::{cell::RefCell, fmt, ops::RangeInclusive};

use cloudberth_core::{Secret, annotation::nearest};

use super::{
    Mistake,
    node::{Kind, Node},
};

/// A value of the file, or the place where one could stand.
///
/// What is not there, and what is empty or `null`, reads as nothing without a mistake. What cannot be read is noted as a
/// mistake, and reads as nothing too.
#[derive(Clone)]
pub struct Value<'a> {
    node: Option<&'a Node>,
    line: usize,
    field: String,
    mistakes: &'a RefCell<Vec<Mistake>>,
}

impl<'a> Value<'a> {
    pub(super) fn root(node: &'a Node, mistakes: &'a RefCell<Vec<Mistake>>) -> Self {
        Self { node: Some(node), line: node.line, field: String::new(), mistakes }
    }

    /// The line of the file.
    pub const fn line(&self) -> usize {
        self.line
    }

    /// Notes a mistake about this value. `text` must not quote a secret.
    pub fn wrong(&self, text: impl Into<String>) {
        let mistake = Mistake { line: self.line, field: self.field.clone(), text: text.into() };
        self.mistakes.borrow_mut().push(mistake);
    }

    /// Text. A number or a truth value without quotes is text as well, exactly as it is written.
    pub fn text(&self) -> Option<String> {
        self.scalar("it must be text").map(|(text, _)| text.to_owned())
    }

    /// A credential. No mistake about it quotes anything.
    pub fn secret(&self) -> Option<Secret> {
        let (text, _) = self.scalar("it must be text")?;
        Secret::new(text).map_err(|why| self.wrong(why.message())).ok()
    }

    /// A whole number in decimal digits, without quotes.
    pub fn integer<T>(&self, range: RangeInclusive<T>) -> Option<T>
    where
        T: TryFrom<i128> + Into<i128> + Copy,
    {
        let (from, to): (i128, i128) = ((*range.start()).into(), (*range.end()).into());
        let must = format!("it must be a whole number from {from} to {to}");
        let (text, plain) = self.scalar(&must)?;
        let number = text.parse::<i128>().ok().filter(|number| plain && (from..=to).contains(number));
        let number = number.and_then(|number| T::try_from(number).ok());
        if number.is_none() {
            self.wrong(format!("{must}, not {}", shown(text, plain)));
        }
        number
    }

    /// `true` or `false`, without quotes.
    pub fn boolean(&self) -> Option<bool> {
        let must = "it must be true or false";
        let (text, plain) = self.scalar(must)?;
        let truth = text.parse().ok().filter(|_| plain);
        if truth.is_none() {
            self.wrong(format!("{must}, not {}", shown(text, plain)));
        }
        truth
    }

    /// Text that `read` makes something of; its error is the mistake.
    pub fn parse<T, E: fmt::Display>(&self, read: impl FnOnce(&str) -> Result<T, E>) -> Option<T> {
        let (text, _) = self.scalar("it must be text")?;
        read(text).map_err(|why| self.wrong(why.to_string())).ok()
    }

    /// A mapping whose fields are all known. `read` asks for every one of them before it takes any apart: a field that it
    /// did not ask for is reported as unknown. If it gives `None` it may have stopped early, and none is.
    pub fn fields<T>(&self, read: impl FnOnce(&mut Fields<'a>) -> Option<T>) -> Option<T> {
        let entries = self.mapping()?;
        let mut fields = Fields { place: self.clone(), entries, asked: Vec::new() };
        let made = read(&mut fields);
        if made.is_some() {
            fields.unknown();
        }
        made
    }

    /// A list; no list is an empty one.
    pub fn items<T>(&self, mut read: impl FnMut(Value<'a>) -> Option<T>) -> Vec<T> {
        match self.kind() {
            Some(Kind::List(items)) => {
                let item = |(at, node): (usize, &'a Node)| Value {
                    node: Some(node),
                    line: node.line,
                    field: format!("{}[{at}]", self.field),
                    mistakes: self.mistakes,
                };
                items.iter().enumerate().filter_map(|entry| read(item(entry))).collect()
            }
            _ => self.not("it must be a list"),
        }
    }

    /// A mapping whose keys the user chooses; no mapping is an empty one.
    pub fn entries<T>(&self, mut read: impl FnMut(&'a str, Value<'a>) -> Option<T>) -> Vec<T> {
        let entries = self.mapping().unwrap_or_default();
        entries.into_iter().filter_map(|(key, value)| read(key, value)).collect()
    }

    /// The node, unless it is nothing.
    fn kind(&self) -> Option<&'a Kind> {
        self.node.map(|node| &node.kind).filter(|kind| !matches!(kind, Kind::Null))
    }

    /// Notes what the value must be, if there is one.
    fn not<T: Default>(&self, must: &str) -> T {
        match self.kind() {
            None => {}
            Some(Kind::Odd(why)) => self.wrong(*why),
            Some(_) => self.wrong(must),
        }
        T::default()
    }

    fn scalar(&self, must: &str) -> Option<(&'a str, bool)> {
        match self.kind() {
            Some(Kind::Scalar { text, plain }) => Some((text, *plain)),
            _ => self.not(must),
        }
    }

    /// The entries of a mapping, each key once. An empty file is a mapping without entries.
    fn mapping(&self) -> Option<Vec<(&'a str, Value<'a>)>> {
        let entries = match self.kind() {
            Some(Kind::Map(entries)) => entries.as_slice(),
            None if self.field.is_empty() => &[],
            _ => return self.not("it must be a mapping of fields to values"),
        };
        let mut found: Vec<(&'a str, Value<'a>)> = Vec::new();
        for (key, line, node) in entries {
            let Some(key) = key else {
                let place = Value { line: *line, ..self.clone() };
                place.wrong("the name of a field must be text");
                continue;
            };
            let field = if self.field.is_empty() { key.clone() } else { format!("{}.{key}", self.field) };
            // What is empty has no place of its own.
            let line = if matches!(node.kind, Kind::Null) { *line } else { node.line };
            let value = Value { node: Some(node), line, field, mistakes: self.mistakes };
            match found.iter().find(|(other, _)| other == key) {
                Some((_, first)) => value.wrong(format!("it is given already on line {}", first.line)),
                None => found.push((key, value)),
            }
        }
        Some(found)
    }
}

/// The fields of a mapping.
pub struct Fields<'a> {
    place: Value<'a>,
    entries: Vec<(&'a str, Value<'a>)>,
    asked: Vec<(&'static str, &'static str)>,
}

impl<'a> Fields<'a> {
    /// The value of a field that may be left out.
    pub fn optional(&mut self, name: &'static str) -> Value<'a> {
        self.asked.push((name, name));
        let given = self.entries.iter().find(|(key, _)| *key == name).map(|(_, value)| value.clone());
        given.unwrap_or_else(|| {
            let outer = &self.place.field;
            let field = if outer.is_empty() { name.to_owned() } else { format!("{outer}.{name}") };
            Value { node: None, field, ..self.place.clone() }
        })
    }

    /// The value of a field that has to be there.
    pub fn required(&mut self, name: &'static str) -> Value<'a> {
        let value = self.optional(name);
        if value.kind().is_none() {
            value.wrong("it is missing");
        }
        value
    }

    /// Notes the fields that nobody asked for.
    fn unknown(&self) {
        for (key, value) in &self.entries {
            if !self.asked.iter().any(|(name, _)| name == key) {
                let hint = nearest(key, "", &self.asked).map(|name| format!("; did you mean {name}?"));
                value.wrong(format!("there is no such field{}", hint.unwrap_or_default()));
            }
        }
    }
}

/// A value as a mistake quotes it.
fn shown(text: &str, plain: bool) -> String {
    const LONGEST: usize = 40;
    let cut = text.char_indices().nth(LONGEST).and_then(|(end, _)| text.get(..end));
    let (text, more) = cut.map_or((text, ""), |start| (start, "…"));
    if plain { format!("{text}{more}") } else { format!("the text {text:?}{more}") }
}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Value").field("line", &self.line).field("field", &self.field).finish_non_exhaustive()
    }
}

impl fmt::Debug for Fields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fields").field("place", &self.place).finish_non_exhaustive()
    }
}
