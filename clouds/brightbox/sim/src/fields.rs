//! Reads the fields of a request's body and collects all mistakes.

use serde_json::{Map, Value};

use super::refusal::Refusal;

/// A body that is being read. Getters return nothing for what is wrong or missing; call [`Fields::finish`] before
/// using the values.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    body: &'a Map<String, Value>,
    /// Stands before the name of a field in a mistake: `Listener 2 `.
    place: String,
    mistakes: Vec<String>,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(body: &'a Map<String, Value>) -> Self {
        Self { body, place: String::new(), mistakes: Vec::new() }
    }

    /// The fields of a part of a body.
    pub(crate) fn within(place: &str, body: &'a Map<String, Value>) -> Self {
        Self { body, place: format!("{place} "), mistakes: Vec::new() }
    }

    pub(crate) fn mistake(&mut self, why: &str) {
        self.mistakes.push(format!("{}{why}", self.place));
    }

    /// Takes over the mistakes of a part.
    pub(crate) fn absorb(&mut self, part: Fields<'_>) {
        self.mistakes.extend(part.mistakes);
    }

    /// Fails with all mistakes, if there are any.
    pub(crate) fn finish(self) -> Result<(), Refusal> {
        if self.mistakes.is_empty() { Ok(()) } else { Err(Refusal::invalid(&self.mistakes)) }
    }

    /// Whether the field is there, be it `null`.
    pub(crate) fn has(&self, field: &str) -> bool {
        self.body.contains_key(field)
    }

    /// The raw value, unless it is missing or `null`.
    pub(crate) fn value(&self, field: &str) -> Option<&'a Value> {
        self.body.get(field).filter(|value| !value.is_null())
    }

    pub(crate) fn text(&mut self, field: &str) -> Option<&'a str> {
        let text = self.value(field)?.as_str();
        match text {
            None => self.mistake(&format!("{field} must be a string")),
            Some(text) if text.chars().count() > 255 => {
                self.mistake(&format!("{field} is too long (maximum is 255 characters)"));
            }
            Some(_) => {}
        }
        text
    }

    /// Puts a text in its place: `null` removes it, and a field that is missing leaves it as it is.
    pub(crate) fn set_text(&mut self, field: &str, place: &mut Option<String>) {
        if self.has(field) {
            *place = self.text(field).map(str::to_owned);
        }
    }

    /// One of these words.
    pub(crate) fn word(&mut self, field: &str, words: &[&str]) -> Option<&'a str> {
        let text = self.text(field)?;
        if !words.contains(&text) {
            self.mistake(&format!("{field} must be one of {}", words.join(", ")));
        }
        Some(text)
    }

    /// One of these words, which must be there.
    pub(crate) fn required_word(&mut self, field: &str, words: &[&str]) -> &'a str {
        self.required(field);
        self.word(field, words).unwrap_or_default()
    }

    fn required(&mut self, field: &str) {
        if self.value(field).is_none() {
            self.mistake(&format!("{field} can't be blank"));
        }
    }

    /// A whole number within these bounds.
    pub(crate) fn number(&mut self, field: &str, least: i64, most: i64) -> Option<i64> {
        let number = self.value(field)?.as_i64().filter(|number| (least..=most).contains(number));
        if number.is_none() {
            self.mistake(&format!("{field} must be a number from {least} to {most}"));
        }
        number
    }

    pub(crate) fn required_port(&mut self, field: &str) -> u16 {
        self.required(field);
        let port = self.number(field, 1, i64::from(u16::MAX));
        port.and_then(|port| u16::try_from(port).ok()).unwrap_or_default()
    }

    pub(crate) fn flag(&mut self, field: &str) -> Option<bool> {
        let flag = self.value(field)?.as_bool();
        if flag.is_none() {
            self.mistake(&format!("{field} must be true or false"));
        }
        flag
    }

    /// A list; what is no list is a mistake.
    pub(crate) fn list(&mut self, field: &str) -> Option<&'a [Value]> {
        let list = self.value(field)?.as_array();
        if list.is_none() {
            self.mistake(&format!("{field} must be a list"));
        }
        list.map(Vec::as_slice)
    }

    /// The texts under `key` of a list of objects: the ids in `[{"node": id}]`.
    pub(crate) fn references(&mut self, field: &str, key: &str) -> Option<Vec<&'a str>> {
        let list = self.list(field)?;
        let ids: Option<Vec<_>> = list.iter().map(|item| item.get(key)?.as_str()).collect();
        if ids.is_none() {
            self.mistake(&format!("{field} must be a list of objects with {key}"));
        }
        ids
    }
}

/// Nothing at all is an empty object.
pub(crate) fn object(body: &[u8]) -> Result<Map<String, Value>, Refusal> {
    match parse(body)? {
        Value::Object(fields) => Ok(fields),
        _ => Err(Refusal::bad_request("The body must be an object")),
    }
}

/// An object, or a bare list, which then is under this key.
pub(crate) fn object_or_list(body: &[u8], key: &str) -> Result<Map<String, Value>, Refusal> {
    match parse(body)? {
        Value::Array(items) => Ok(Map::from_iter([(key.to_owned(), Value::Array(items))])),
        Value::Object(fields) => Ok(fields),
        _ => Err(Refusal::bad_request("The body must be an object or a list")),
    }
}

fn parse(body: &[u8]) -> Result<Value, Refusal> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(Value::Object(Map::new()));
    }
    serde_json::from_slice(body)
        .map_err(|error| Refusal::bad_request(&format!("The body is no JSON: {error}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_mistakes_are_reported_at_once() {
        let body = json!({"name": 1, "in": 70_000, "on": "yes", "nodes": [{}], "listeners": 7, "long": "x".repeat(256)});
        let mut fields = Fields::within("Listener 2", body.as_object().unwrap());
        fields.text("name");
        fields.text("long");
        fields.required_word("protocol", &["tcp"]);
        fields.required_port("in");
        fields.flag("on");
        fields.references("nodes", "node");
        fields.list("listeners");
        let refusal = fields.finish().unwrap_err();
        let told = refusal.body["errors"].as_array().unwrap();
        assert_eq!((refusal.status, told.len()), (422, 7), "{told:?}");
        assert!(told.iter().all(|text| text.as_str().unwrap().starts_with("Listener 2 ")), "{told:?}");
    }

    #[test]
    fn bodies_are_objects_or_lists_of_one_field() {
        assert!(object(b"").unwrap().is_empty());
        for bad in ["[]", "1", "{", "null"] {
            assert_eq!(object(bad.as_bytes()).unwrap_err().status, 400, "{bad}");
        }
        assert_eq!(object_or_list(b"[1]", "nodes").unwrap()["nodes"], json!([1]));
        assert_eq!(object_or_list(br#"{"nodes":[1]}"#, "nodes").unwrap()["nodes"], json!([1]));
        assert_eq!(object_or_list(b"3", "nodes").unwrap_err().status, 400);
    }
}
