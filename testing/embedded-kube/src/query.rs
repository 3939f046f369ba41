//! The query part of a request.

use super::status::{Answer, Failure};

/// Decoded `key=value` pairs, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(query: Option<&str>) -> Self {
        let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        Self(
            pairs
                .map(|pair| {
                    let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                    (decode(key), decode(value))
                })
                .collect(),
        )
    }

    /// The first value of a key, if it is not empty.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str()).filter(|v| !v.is_empty())
    }

    pub(crate) fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// Any value but `false` and `0` is true.
    pub(crate) fn flag(&self, key: &str) -> bool {
        self.0.iter().find(|(k, _)| k == key).is_some_and(|(_, v)| !matches!(v.as_str(), "false" | "0"))
    }

    /// A whole number, or 400.
    pub(crate) fn number(&self, key: &str) -> Answer<Option<i64>> {
        let parse = |text: &str| {
            text.parse().map_err(|_| {
                Failure::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax"))
            })
        };
        self.get(key).map(parse).transpose()
    }
}

fn decode(text: &str) -> String {
    let spaced = text.replace('+', " ");
    percent_encoding::percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_decoded() {
        let query = Query::parse(Some("labelSelector=a%3Db%2Cc&watch=&limit=5&x=a+b&dryRun=All&dryRun=Some"));
        assert_eq!(query.get("labelSelector"), Some("a=b,c"));
        assert!(query.flag("watch"), "a bare flag is set");
        assert!(!query.flag("follow"));
        assert_eq!(query.number("limit").unwrap(), Some(5));
        assert_eq!(query.get("x"), Some("a b"));
        assert_eq!(query.all("dryRun").collect::<Vec<_>>(), ["All", "Some"]);
        assert!(Query::parse(Some("limit=x")).number("limit").is_err());
    }
}
