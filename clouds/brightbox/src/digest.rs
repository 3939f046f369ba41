//! A short, stable digest of a text, to tell whether settings changed since they were written.

/// FNV-1a of 64 bits, in hexadecimal digits. It has to be the same in every version of the program, because it is recorded
/// on Services; nobody gains anything by a collision.
pub(crate) fn digest(text: &str) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    format!("{:016x}", text.bytes().fold(0xcbf2_9ce4_8422_2325, step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stays_the_same_for_ever() {
        assert_eq!(digest(""), "cbf29ce484222325");
        assert_eq!(digest("a"), "af63dc4c8601ec8c");
        assert_eq!(digest("foobar"), "85944171f73967e8");
    }
}
