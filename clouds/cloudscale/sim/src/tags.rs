//! The filter by tags of every listing.

use percent_encoding::percent_decode_str;

use super::resources::Tags;

/// Tag filters of a listing: all of them must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TagFilter(Vec<(String, String)>);

impl TagFilter {
    /// Reads `tag:key=value` (this value) and `tag:key` or `tag:key=` (any value); other parameters are ignored.
    pub(crate) fn parse(query: Option<&str>) -> Self {
        let decode =
            |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
        let pairs =
            query.unwrap_or_default().split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let tags = pairs.filter_map(|(key, value)| {
            decode(key).strip_prefix("tag:").map(|key| (key.to_owned(), decode(value)))
        });
        Self(tags.collect())
    }

    pub(crate) fn fits(&self, tags: &Tags) -> bool {
        self.0.iter().all(|(key, want)| tags.get(key).is_some_and(|have| want.is_empty() || have == want))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_narrow_a_listing_down() {
        let tags = Tags::from([("team".into(), "a b".into()), ("x:y".into(), "1".into())]);
        let table = [
            ("CS-115 no filter", None, true),
            ("CS-115 other parameters are not ours", Some("page=2"), true),
            ("CS-115 this value", Some("tag:team=a%20b"), true),
            ("CS-115 a space in the other form", Some("tag:team=a+b"), true),
            ("CS-115 another value", Some("tag:team=b"), false),
            ("CS-115 any value", Some("tag:team"), true),
            ("CS-115 any value, with an equals sign", Some("tag:team="), true),
            ("CS-115 no such key", Some("tag:zone"), false),
            ("CS-115 an encoded colon", Some("tag%3Ateam=a%20b"), true),
            ("CS-115 a colon in the key", Some("tag:x%3Ay=1"), true),
            ("CS-115 both fit", Some("tag:team&tag:x:y=1"), true),
            ("CS-115 one of two fits", Some("tag:team&tag:x:y=2"), false),
        ];
        for (case, query, want) in table {
            assert_eq!(TagFilter::parse(query).fits(&tags), want, "{case}");
        }
    }
}
