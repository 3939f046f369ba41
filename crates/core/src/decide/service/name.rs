//! Names and keys.

use crate::{
    error::{Error, Result},
    view::ObjectKey,
};

/// No cloud that the old programs knew takes a longer name.
const NAME_LIMIT: usize = 32;

/// The load-balancer name of programs that do not choose their own: `a` and the UID without dashes, 32 bytes at most.
#[must_use]
pub fn default_name(uid: &str) -> String {
    let mut name: String = ["a", uid].concat().replace('-', "");
    let end = (0..=NAME_LIMIT).rev().find(|&at| name.is_char_boundary(at)).unwrap_or_default();
    name.truncate(end);
    name
}

/// Reads `namespace/name`, or a name alone.
pub fn parse_key(text: &str) -> Result<ObjectKey> {
    let mut parts = text.split('/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(namespace), Some(name), None) => Ok(ObjectKey::new(namespace, name)),
        (Some(name), None, None) => Ok(ObjectKey::new("", name)),
        _ => Err(Error::permanent(format!("unexpected key format: {text:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_names() {
        let table = [
            ("FW-358", "01234567-89ab-cdef-0123-456789abcdef", "a0123456789abcdef0123456789abcde"),
            ("short", "u-1", "au1"),
            ("none", "", "a"),
            ("exactly full", "0123456789abcdef0123456789abcde", "a0123456789abcdef0123456789abcde"),
            (
                "never half a character",
                "0123456789abcdef0123456789abcd\u{e4}",
                "a0123456789abcdef0123456789abcd",
            ),
        ];
        for (case, uid, want) in table {
            assert_eq!(default_name(uid), want, "{case}");
        }
    }

    #[test]
    fn keys() {
        assert_eq!(parse_key("shop/web"), Ok(ObjectKey::new("shop", "web")));
        assert_eq!(parse_key("web"), Ok(ObjectKey::new("", "web")));
        let error = parse_key("a/b/c").unwrap_err();
        assert_eq!(error.message(), "unexpected key format: \"a/b/c\"", "FW-162");
    }
}
