//! What lets a browser in.

use std::{fmt, io};

use ring::rand::{SecureRandom as _, SystemRandom};

/// The token of the link and the value of the cookie that it is exchanged for. Neither shows up in debug output.
#[derive(Clone)]
pub struct Secrets {
    pub(super) token: String,
    pub(super) session: String,
}

impl Secrets {
    /// Two secrets of 128 bits each, from the system's source of randomness.
    pub fn of_this_machine() -> io::Result<Self> {
        let random = SystemRandom::new();
        let draw = || {
            let mut bytes = [0_u8; 16];
            random.fill(&mut bytes).map_err(|_| io::Error::other("the system gives no random numbers"))?;
            Ok::<_, io::Error>(format!("{:032x}", u128::from_be_bytes(bytes)))
        };
        Ok(Self { token: draw()?, session: draw()? })
    }

    /// These two, which a test has to know.
    #[cfg(test)]
    pub(super) fn known(token: &str, session: &str) -> Self {
        Self { token: token.to_owned(), session: session.to_owned() }
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets(..)")
    }
}
