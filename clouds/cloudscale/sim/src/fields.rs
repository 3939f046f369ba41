//! Reads the fields of a request's body and collects all mistakes.

use std::net::IpAddr;

use serde_json::{Map, Value};

use super::{refusal::Refusal, resources::Tags};

/// A body that is being read. Getters return a placeholder for what is wrong or missing; call [`Fields::finish`] before
/// using the values.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    body: &'a Map<String, Value>,
    mistakes: Map<String, Value>,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(body: &'a Map<String, Value>) -> Self {
        Self { body, mistakes: Map::new() }
    }

    pub(crate) fn mistake(&mut self, field: &str, why: impl Into<Value>) {
        self.mistakes.entry(field).or_insert_with(|| why.into());
    }

    /// Fails with all mistakes, if there are any.
    pub(crate) fn finish(self) -> Result<(), Refusal> {
        if self.mistakes.is_empty() { Ok(()) } else { Err(Refusal::fields(self.mistakes)) }
    }

    /// The raw value, unless it is missing or `null`.
    pub(crate) fn value(&self, field: &str) -> Option<&'a Value> {
        self.body.get(field).filter(|value| !value.is_null())
    }

    pub(crate) fn text(&mut self, field: &str) -> Option<&'a str> {
        let text = self.value(field)?.as_str();
        if text.is_none() {
            self.mistake(field, "Not a valid string.");
        }
        text
    }

    pub(crate) fn required_text(&mut self, field: &str) -> &'a str {
        match self.body.get(field) {
            None => self.mistake(field, "This field is required."),
            Some(Value::Null) => self.mistake(field, "This field may not be null."),
            Some(Value::String(text)) if text.trim().is_empty() => {
                self.mistake(field, "This field may not be blank.");
            }
            Some(Value::String(text)) => return text,
            Some(_) => self.mistake(field, "Not a valid string."),
        }
        ""
    }

    /// One of these words.
    pub(crate) fn required_word(&mut self, field: &str, words: &[&str]) -> &'a str {
        let text = self.required_text(field);
        if !text.is_empty() && !words.contains(&text) {
            self.mistake(field, format!("Invalid value {text:?}. Expect one of: {}.", words.join(", ")));
        }
        text
    }

    /// A whole number of at least 1, or the default.
    pub(crate) fn positive(&mut self, field: &str, default: i64) -> i64 {
        match self.value(field).map(|value| check_positive(value)) {
            None => default,
            Some(Ok(number)) => number,
            Some(Err(why)) => {
                self.mistake(field, why);
                default
            }
        }
    }

    pub(crate) fn port(&mut self, field: &str) -> Option<u16> {
        let value = self.value(field)?;
        let port = value.as_i64().and_then(|number| u16::try_from(number).ok()).filter(|port| *port > 0);
        if port.is_none() {
            self.mistake(field, format!("The {field} must be between 1 and 65535."));
        }
        port
    }

    pub(crate) fn required_port(&mut self, field: &str) -> u16 {
        if self.value(field).is_none() {
            self.mistake(field, "This field is required.");
        }
        self.port(field).unwrap_or_default()
    }

    pub(crate) fn address(&mut self, field: &str) -> Option<IpAddr> {
        let text = self.text(field)?;
        let address = text.parse().ok();
        if address.is_none() {
            self.mistake(field, "Enter a valid IPv4 or IPv6 address.");
        }
        address
    }

    pub(crate) fn flag(&mut self, field: &str, default: bool) -> bool {
        match self.value(field) {
            None => default,
            Some(Value::Bool(flag)) => *flag,
            Some(_) => {
                self.mistake(field, "Must be a valid boolean.");
                default
            }
        }
    }

    pub(crate) fn tags(&mut self) -> Tags {
        match self.value("tags").map(check_tags) {
            None => Tags::new(),
            Some(Ok(tags)) => tags,
            Some(Err(why)) => {
                self.mistake("tags", why);
                Tags::new()
            }
        }
    }
}

pub(crate) fn check_positive(value: &Value) -> Result<i64, &'static str> {
    match value.as_i64() {
        None => Err("A valid integer is required."),
        Some(number) if !(1..=i64::from(i32::MAX)).contains(&number) => {
            Err("Ensure this value is greater than or equal to 1.")
        }
        Some(number) => Ok(number),
    }
}

pub(crate) fn check_tags(value: &Value) -> Result<Tags, &'static str> {
    let entries = value.as_object().ok_or("Expected a dictionary of items.")?;
    let entries = entries.iter().map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
    entries.collect::<Option<_>>().ok_or("Not a valid string.")
}

pub(crate) fn check_name(value: &Value) -> Result<String, &'static str> {
    match value.as_str() {
        None => Err("Not a valid string."),
        Some(name) if name.trim().is_empty() => Err("This field may not be blank."),
        Some(name) => Ok(name.to_owned()),
    }
}

/// The one attribute that a PATCH changes; none if it is empty.
pub(crate) fn single(body: &Map<String, Value>) -> Result<Option<(&str, &Value)>, Refusal> {
    let mut attributes = body.iter();
    match (attributes.next(), attributes.next()) {
        (_, Some(_)) => Err(Refusal::new(
            400,
            "Only one attribute can be changed at a time. To keep changes atomic, send several requests.",
        )),
        (first, None) => Ok(first.map(|(key, value)| (key.as_str(), value))),
    }
}

/// A PATCH of what every resource has: `name` (where it has one) and `tags`. Any other attribute stays as it is.
pub(crate) fn patch_labels(
    attribute: &str,
    value: &Value,
    name: Option<&mut String>,
    tags: &mut Tags,
) -> Result<(), Refusal> {
    match (attribute, name) {
        ("name", Some(name)) => *name = check_name(value).map_err(|why| Refusal::field("name", why))?,
        ("tags", _) => *tags = check_tags(value).map_err(|why| Refusal::field("tags", why))?,
        (other, _) => return Err(Refusal::fixed(other)),
    }
    Ok(())
}

/// `null` and nothing at all are an empty object.
pub(crate) fn object(body: &[u8]) -> Result<Map<String, Value>, Refusal> {
    if body.is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_slice(body) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) => Err(Refusal::new(400, "Invalid data. Expected a dictionary.")),
        Err(error) => Err(Refusal::new(400, &format!("JSON parse error - {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_mistakes_are_reported_at_once() {
        let body = json!({"name": "", "port": 70_000, "delay": 0, "on": "yes", "tags": {"a": 1}, "ip": "x"});
        let body = body.as_object().unwrap();
        let mut fields = Fields::new(body);
        fields.required_text("name");
        fields.required_word("kind", &["a"]);
        fields.required_port("port");
        fields.positive("delay", 2);
        fields.flag("on", true);
        fields.tags();
        fields.address("ip");
        let refusal = fields.finish().unwrap_err();
        let told: Vec<_> = refusal.body.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(told, ["delay", "ip", "kind", "name", "on", "port", "tags"]);
    }

    #[test]
    fn a_patch_has_one_attribute() {
        let two = json!({"a": 1, "b": 2});
        let refusal = single(two.as_object().unwrap()).unwrap_err();
        assert!(refusal.body["detail"].as_str().unwrap().contains("To keep changes atomic"));
        assert_eq!(single(&Map::new()).unwrap(), None);
    }

    #[test]
    fn bodies_are_objects() {
        assert!(object(b"").unwrap().is_empty() && object(b"null").unwrap().is_empty());
        for bad in ["[]", "1", "{"] {
            assert_eq!(object(bad.as_bytes()).unwrap_err().status, 400, "{bad}");
        }
    }
}
