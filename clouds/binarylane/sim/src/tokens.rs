//! Authentication by token. A token has no scope: it may do everything in its account.

use std::collections::BTreeMap;

/// Whose account a token belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The account that the handle shows.
    Own,
    /// Another account, which starts empty.
    OtherAccount,
}

/// The tokens that are known.
#[derive(Debug, Default)]
pub(crate) struct Tokens(Option<BTreeMap<String, Access>>);

impl Tokens {
    /// Accepts only these tokens from now on.
    pub(crate) fn set(&mut self, tokens: BTreeMap<String, Access>) {
        self.0 = Some(tokens);
    }

    /// Whose account it is. Until tokens are set, any token is accepted, but there must be one. `None` is 401.
    pub(crate) fn check(&self, authorization: Option<&str>) -> Option<Access> {
        let token = authorization?.strip_prefix("Bearer ").filter(|token| !token.is_empty())?;
        self.0.as_ref().map_or(Some(Access::Own), |known| known.get(token).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_decide_on_access() {
        let mut some = Tokens::default();
        some.set([("own".to_owned(), Access::Own), ("other".to_owned(), Access::OtherAccount)].into());
        let any = Tokens::default();
        let table = [
            (&any, Some("Bearer x"), Some(Access::Own)),
            (&any, Some("Bearer "), None),
            (&any, Some("Basic x"), None),
            (&any, None, None),
            (&some, Some("Bearer own"), Some(Access::Own)),
            (&some, Some("Bearer other"), Some(Access::OtherAccount)),
            (&some, Some("Bearer x"), None),
        ];
        for (tokens, header, want) in table {
            assert_eq!(tokens.check(header), want, "{header:?}");
        }
    }
}
