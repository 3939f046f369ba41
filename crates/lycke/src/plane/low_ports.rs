//! Ports that need a privilege.

use std::io::{Error, ErrorKind};

use super::config::LowPorts;

/// How far a port is shifted.
const SHIFT: u16 = 10_000;
/// The first port that everybody may bind, on a system where nobody has changed it.
const FIRST_FREE: u16 = 1024;

/// Binds a port, or the one it is shifted to if the process lacks the privilege for it. Answers what was bound, and whether
/// it was shifted. `own` says whether the load balancer itself wants a port: it is not taken from under its own listener.
pub(crate) fn bind_or_shift<T>(
    port: u16,
    low_ports: LowPorts,
    own: impl Fn(u16) -> bool,
    mut bind: impl FnMut(u16) -> Result<T, Error>,
) -> Result<(T, bool), Error> {
    let denied = match bind(port) {
        Ok(bound) => return Ok((bound, false)),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => error,
        Err(error) => return Err(error),
    };
    let shifted = port.saturating_add(SHIFT);
    if low_ports == LowPorts::Fail || port >= FIRST_FREE || own(shifted) {
        return Err(denied);
    }
    bind(shifted).map(|bound| (bound, true)).map_err(|error| match error.kind() {
        ErrorKind::AddrInUse | ErrorKind::PermissionDenied => denied,
        _ => error,
    })
}

#[cfg(test)]
mod tests {
    use super::{
        ErrorKind::{AddrInUse, AddrNotAvailable, PermissionDenied},
        LowPorts::{Fail, Shift},
        *,
    };

    #[test]
    fn a_port_is_shifted_only_for_lack_of_a_privilege() {
        type Row = (
            &'static str,
            u16,
            LowPorts,
            Option<ErrorKind>,
            Option<ErrorKind>,
            Result<(u16, bool), ErrorKind>,
        );
        let table: [Row; 9] = [
            ("CL-64 with the privilege", 80, Shift, None, None, Ok((80, false))),
            ("CL-64 without it", 80, Shift, Some(PermissionDenied), None, Ok((10_080, true))),
            ("CL-64 not to be shifted", 80, Fail, Some(PermissionDenied), None, Err(PermissionDenied)),
            ("CL-64 in use", 80, Shift, Some(AddrInUse), None, Err(AddrInUse)),
            (
                "CL-64 shifted, in use",
                80,
                Shift,
                Some(PermissionDenied),
                Some(AddrInUse),
                Err(PermissionDenied),
            ),
            (
                "CL-64 shifted, no address",
                80,
                Shift,
                Some(PermissionDenied),
                Some(AddrNotAvailable),
                Err(AddrNotAvailable),
            ),
            ("CL-64 its own listener", 443, Shift, Some(PermissionDenied), None, Err(PermissionDenied)),
            ("CL-64 no low port", 1024, Shift, Some(PermissionDenied), None, Err(PermissionDenied)),
            ("CL-64 the last low port", 1023, Shift, Some(PermissionDenied), None, Ok((11_023, true))),
        ];
        for (case, port, low_ports, at_port, at_shifted, want) in table {
            let bind = |asked: u16| match if asked == port { at_port } else { at_shifted } {
                None => Ok(asked),
                Some(kind) => Err(Error::from(kind)),
            };
            let got = bind_or_shift(port, low_ports, |own| own == 10_443, bind).map_err(|error| error.kind());
            assert_eq!(got, want, "{case}");
        }
    }
}
