//! What an event of the operating system is about.

use mio::Token;

/// What a socket is to the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// No socket: somebody has put something into the inbox.
    Inbox,
    Listener,
    Client,
    Backend,
    UdpListener,
    UdpFlow,
}

/// A socket: what it is, its place, and how often the place was used before, so that an event for a socket that was closed
/// is not taken for one of its successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) source: Source,
    pub(crate) place: usize,
    pub(crate) generation: u32,
}

const SOURCES: [Source; 6] =
    [Source::Inbox, Source::Listener, Source::Client, Source::Backend, Source::UdpListener, Source::UdpFlow];
const SOURCE_BITS: u32 = 3;
const PLACE_BITS: u32 = usize::BITS / 2;
/// How many bits are left for the generation.
const GENERATION_BITS: u32 = usize::BITS - SOURCE_BITS - PLACE_BITS;

/// The generation after this one.
pub(crate) fn next_generation(generation: u32) -> u32 {
    generation.wrapping_add(1) & ((1 << GENERATION_BITS) - 1)
}

impl Address {
    pub(crate) fn new(source: Source, place: usize, generation: u32) -> Self {
        Self { source, place, generation }
    }

    pub(crate) fn token(self) -> Token {
        let source = SOURCES.iter().position(|source| *source == self.source).unwrap_or_default();
        let generation = usize::try_from(self.generation).unwrap_or_default();
        Token(source | (self.place << SOURCE_BITS) | (generation << (SOURCE_BITS + PLACE_BITS)))
    }

    pub(crate) fn of(Token(token): Token) -> Option<Self> {
        let source = *SOURCES.get(token & ((1 << SOURCE_BITS) - 1))?;
        let place = (token >> SOURCE_BITS) & ((1 << PLACE_BITS) - 1);
        Some(Self { source, place, generation: u32::try_from(token >> (SOURCE_BITS + PLACE_BITS)).ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_survives_the_way_through_the_kernel() {
        for source in SOURCES {
            for (place, generation) in [(0, 0), (1, 7), (1_000_000, (1 << GENERATION_BITS) - 1)] {
                let address = Address::new(source, place, generation);
                assert_eq!(Address::of(address.token()), Some(address));
            }
        }
        assert_eq!(next_generation((1 << GENERATION_BITS) - 1), 0);
        assert_eq!(Address::of(Token(7)), None);
    }
}
