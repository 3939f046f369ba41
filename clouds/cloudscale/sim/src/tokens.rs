//! Authentication by token.

use std::collections::BTreeMap;

use super::refusal::Refusal;

/// What a token lets its bearer do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read and write.
    ReadWrite,
    /// Read only: a write is answered with 403.
    ReadOnly,
    /// Read and write in another project, which starts empty.
    OtherProject,
}

/// The tokens that are known.
#[derive(Debug, Default)]
pub(crate) struct Tokens(Option<BTreeMap<String, Access>>);

impl Tokens {
    /// Accepts only these tokens from now on.
    pub(crate) fn set(&mut self, tokens: BTreeMap<String, Access>) {
        self.0 = Some(tokens);
    }

    /// What the bearer may do. Until tokens are set, any token is accepted, but there must be one.
    pub(crate) fn check(&self, authorization: Option<&str>, write: bool) -> Result<Access, Refusal> {
        let token = authorization.and_then(|header| header.strip_prefix("Bearer ")).filter(|t| !t.is_empty());
        let Some(token) = token else {
            return Err(Refusal::new(401, "Authentication credentials were not provided."));
        };
        let access = match &self.0 {
            None => Access::ReadWrite,
            Some(known) => *known.get(token).ok_or_else(|| Refusal::new(401, "Invalid token."))?,
        };
        if write && access == Access::ReadOnly {
            return Err(Refusal::new(403, "You do not have permission to perform this action."));
        }
        Ok(access)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_decide_on_access() {
        let mut some = Tokens::default();
        some.set([("rw".to_owned(), Access::ReadWrite), ("ro".to_owned(), Access::ReadOnly)].into());
        let table = [
            (&Tokens::default(), Some("Bearer x"), true, Ok(Access::ReadWrite)),
            (&Tokens::default(), Some("Bearer "), false, Err(401)),
            (&Tokens::default(), Some("Basic x"), false, Err(401)),
            (&Tokens::default(), None, false, Err(401)),
            (&some, Some("Bearer rw"), true, Ok(Access::ReadWrite)),
            (&some, Some("Bearer ro"), false, Ok(Access::ReadOnly)),
            (&some, Some("Bearer ro"), true, Err(403)),
            (&some, Some("Bearer x"), false, Err(401)),
        ];
        for (tokens, header, write, want) in table {
            let got = tokens.check(header, write).map_err(|refusal| refusal.status);
            assert_eq!(got, want, "{header:?} {write}");
        }
    }
}
