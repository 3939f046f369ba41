//! The API's resources as they go over the wire.
//!
//! Reading is lenient where nothing hangs on it: unknown keys are ignored, and what is not known is `None`. Where
//! something is decided by a field that the API always tells, a field that is missing or null was not told, which is not
//! the same as "none" (law 1): the thing cannot be read whole, and only who it is and what it belongs to is known of it.
//! A listing in which not even that can be read proves nothing.

mod identity;
mod read;
mod write;

pub use identity::{FloatingIdentity, Named, PartIdentity};
pub use read::{
    BalancerStatus, FlavorStub, FloatingIp, HealthMonitor, HttpOptions, Interface, InterfaceAddress,
    Listener, LoadBalancer, Member, Pool, Server, SlugStub, Stub, SubnetStub, VipAddress,
};
pub use write::{
    HttpChange, ListenerChange, MonitorChange, NewBalancer, NewHttp, NewListener, NewMember, NewMonitor,
    NewPool, NewVip,
};
