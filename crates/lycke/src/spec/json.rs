//! Strict JSON: every fault at once, each with its field and value.

use std::{
    cell::{Cell, RefCell},
    ops::RangeInclusive,
};

use cloudberth_core::annotation::nearest;
use serde_json::{Map, Value};

/// The faults that were found.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    all: RefCell<Vec<String>>,
    /// Whether one of them is a fault by itself. The others have answers of their own, and are named beside it only so
    /// that all faults are told at once.
    decided: Cell<bool>,
}

impl Faults {
    pub(crate) fn note(&self, field: &str, text: &str) {
        self.decided.set(true);
        self.note_beside(field, text);
    }

    fn note_beside(&self, field: &str, text: &str) {
        let fault = if field.is_empty() { text.to_owned() } else { format!("{field}: {text}") };
        self.all.borrow_mut().push(fault);
    }

    /// All of them in one text; none is success.
    pub(crate) fn into_result(self) -> Result<(), String> {
        if self.decided.get() { Err(self.all.into_inner().join("; ")) } else { Ok(()) }
    }
}

/// A value, or the place where one could be. `null` is none.
#[derive(Clone, Debug)]
pub(crate) struct Place<'a> {
    value: Option<&'a Value>,
    field: String,
    faults: &'a Faults,
}

impl<'a> Place<'a> {
    pub(crate) fn root(value: &'a Value, faults: &'a Faults) -> Self {
        Self { value: Some(value), field: String::new(), faults }
    }

    pub(crate) fn wrong(&self, text: &str) {
        self.faults.note(&self.field, text);
    }

    /// Something that is refused later, with a code of its own: told here only if anything else is wrong.
    pub(crate) fn wrong_beside(&self, text: &str) {
        self.faults.note_beside(&self.field, text);
    }

    pub(crate) fn is_given(&self) -> bool {
        self.value.is_some()
    }

    fn must_be<T>(&self, what: &str) -> Option<T> {
        if let Some(value) = self.value {
            self.wrong(&format!("{} must be {what}", shown(value)));
        }
        None
    }

    pub(crate) fn text(&self) -> Option<&'a str> {
        match self.value {
            Some(Value::String(text)) => Some(text),
            _ => self.must_be("text"),
        }
    }

    pub(crate) fn parse<T>(&self, read: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        read(self.text()?).map_err(|why| self.wrong(&why)).ok()
    }

    /// One of some words.
    pub(crate) fn word<T: Copy>(&self, words: &[(&str, T)]) -> Option<T> {
        self.parse(|text| {
            let found = words.iter().find(|(word, _)| *word == text);
            found.map(|(_, meant)| *meant).ok_or_else(|| {
                let all: Vec<_> = words.iter().map(|(word, _)| *word).collect();
                format!("{text:?} must be one of {}", all.join(", "))
            })
        })
    }

    pub(crate) fn integer(&self, range: RangeInclusive<u32>) -> Option<u32> {
        let number = self.value.and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok());
        let number = number.filter(|number| range.contains(number));
        number.or_else(|| self.must_be(&format!("a whole number from {} to {}", range.start(), range.end())))
    }

    pub(crate) fn port(&self) -> Option<u16> {
        self.integer(1..=65_535).and_then(|port| u16::try_from(port).ok())
    }

    pub(crate) fn items<T>(&self, mut read: impl FnMut(Self) -> Option<T>) -> Option<Vec<T>> {
        let Some(Value::Array(items)) = self.value else { return self.must_be("a list") };
        let place = |(at, value): (usize, &'a Value)| Self {
            value: Some(value),
            field: format!("{}[{at}]", self.field),
            faults: self.faults,
        };
        Some(items.iter().enumerate().filter_map(|item| read(place(item))).collect())
    }

    /// An object whose fields are all known: those that `read` asks for.
    pub(crate) fn fields<T>(&self, read: impl FnOnce(&mut Fields<'a>) -> T) -> Option<T> {
        let Some(Value::Object(entries)) = self.value else { return self.must_be("an object") };
        let mut fields = Fields { place: self.clone(), entries, asked: Vec::new() };
        let made = read(&mut fields);
        fields.refuse_others();
        Some(made)
    }
}

/// The fields of an object.
pub(crate) struct Fields<'a> {
    place: Place<'a>,
    entries: &'a Map<String, Value>,
    asked: Vec<(&'static str, &'static str)>,
}

impl<'a> Fields<'a> {
    pub(crate) fn optional(&mut self, name: &'static str) -> Place<'a> {
        self.asked.push((name, name));
        let value = self.entries.get(name).filter(|value| !value.is_null());
        Place { value, field: self.path(name), faults: self.place.faults }
    }

    pub(crate) fn required(&mut self, name: &'static str) -> Place<'a> {
        let place = self.optional(name);
        if !place.is_given() {
            place.wrong("it is missing");
        }
        place
    }

    fn path(&self, name: &str) -> String {
        let outer = &self.place.field;
        if outer.is_empty() { name.to_owned() } else { format!("{outer}.{name}") }
    }

    fn refuse_others(&self) {
        for key in self.entries.keys() {
            if !self.asked.iter().any(|(name, _)| name == key) {
                let hint = nearest(key, "", &self.asked).map(|name| format!("; did you mean {name}?"));
                let text = format!("there is no such field{}", hint.unwrap_or_default());
                self.place.faults.note(&self.path(key), &text);
            }
        }
    }
}

/// A value as a fault quotes it.
fn shown(value: &Value) -> String {
    const LONGEST: usize = 60;
    let text = value.to_string();
    match text.char_indices().nth(LONGEST).and_then(|(end, _)| text.get(..end)) {
        Some(start) => format!("{start}…"),
        None => text,
    }
}
