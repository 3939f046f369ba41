//! The cloud's ids, and the provider ids made of them.

/// The scheme of provider ids, and the name of the provider.
pub const SCHEME: &str = "cloudscale";

/// Reads a UUID in any spelling that the replaced program accepts: with hyphens or without, in any case, as a URN, or between
/// braces. The result is lower-case with hyphens.
pub fn parse_uuid(text: &str) -> Option<String> {
    let inner = match text.len() {
        36 | 32 => text,
        38 => text.get(1..37)?,
        45 => {
            text.get(..9).filter(|urn| urn.eq_ignore_ascii_case("urn:uuid:")).and_then(|_| text.get(9..))?
        }
        _ => return None,
    };
    let hyphen = |at: usize| matches!(at, 8 | 13 | 18 | 23);
    let hyphenated = inner.len() == 36;
    if hyphenated && !inner.bytes().enumerate().all(|(at, b)| (b == b'-') == hyphen(at)) {
        return None;
    }
    let digits: String = inner.chars().filter(|c| *c != '-').map(|c| c.to_ascii_lowercase()).collect();
    if digits.len() != 32 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
    Some([part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-"))
}

/// What the text of a node's provider id says about its server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerId {
    /// The server's id, in the form in which listings show it.
    Known(String),
    /// Meant for this cloud and written wrong.
    Malformed,
    /// Not of this cloud, or not an id at all.
    Foreign,
}

/// Reads a provider id. Spaces around both halves do not count.
pub fn server_id(text: &str) -> ServerId {
    let Some((scheme, id)) = text.split_once("://") else { return ServerId::Foreign };
    if scheme.trim_matches(' ') != SCHEME {
        return ServerId::Foreign;
    }
    parse_uuid(id.trim_matches(' ')).map_or(ServerId::Malformed, ServerId::Known)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "08d56bfe-40d0-4c68-a915-54f846c28c9e";

    #[test]
    fn ids_are_read_in_every_spelling() {
        let upper = ID.replace('-', "").to_uppercase();
        let table = [
            ("CS-10", ID.to_owned(), Some(ID)),
            ("CS-11", upper.clone(), Some(ID)),
            ("CS-12", ID.replace('-', ""), Some(ID)),
            ("braces", format!("{{{ID}}}"), Some(ID)),
            ("urn", format!("urn:uuid:{ID}"), Some(ID)),
            ("another prefix as long", format!("urn:uuix:{ID}"), None),
            ("one digit short", upper.chars().skip(1).collect(), None),
            ("not a digit", ID.replace('9', "x"), None),
            ("hyphens in the wrong places", "08d56bfe4-0d0-4c68-a915-54f846c28c9e".to_owned(), None),
            ("hyphens for digits", "-".repeat(32), None),
            ("cut inside a character", format!("ä{}", "0".repeat(36)), None),
            ("nothing", String::new(), None),
        ];
        for (case, text, want) in table {
            assert_eq!(parse_uuid(&text).as_deref(), want, "{case}: {text:?}");
        }
    }

    #[test]
    fn provider_ids_are_ours_ours_and_wrong_or_not_ours() {
        use ServerId::{Foreign, Malformed};
        let known = || ServerId::Known(ID.to_owned());
        let table = [
            ("CS-12", format!("cloudscale://{ID}"), known()),
            ("CS-12", format!("cloudscale://{}", ID.to_uppercase().replace('-', "")), known()),
            ("CS-15", format!(" cloudscale :// {ID} "), known()),
            ("CS-13", "cloudscale".to_owned(), Foreign),
            ("CS-13", String::new(), Foreign),
            ("CS-13", format!("cloudscale:/{ID}"), Foreign),
            ("CS-13", format!("://{ID}"), Foreign),
            ("CS-13", "cloudscale://".to_owned(), Malformed),
            ("CS-13", "cloudscale://foo".to_owned(), Malformed),
            ("CS-14", format!("bigcorp://{ID}"), Foreign),
            ("CS-14", format!("cloudscal://{ID}"), Foreign),
            ("CS-14 case counts", format!("Cloudscale://{ID}"), Foreign),
        ];
        for (case, text, want) in table {
            assert_eq!(server_id(&text), want, "{case}: {text:?}");
        }
    }
}
