//! The API's resources as they go over the wire.
//!
//! Reading is lenient where nothing hangs on it: unknown keys are ignored, and what is not known is `None`. What makes
//! up the identity of a thing is required: a listing in which it is missing cannot be read, and what cannot be read is
//! never taken for something else (law 1).

mod read;
mod write;

pub use read::{
    BalancerStatus, FlavorStub, FloatingIp, HealthMonitor, HttpOptions, Interface, InterfaceAddress,
    Listener, LoadBalancer, Member, Pool, Server, SlugStub, Stub, SubnetStub, VipAddress,
};
pub use write::{
    HttpChange, ListenerChange, MonitorChange, NewBalancer, NewHttp, NewListener, NewMember, NewMonitor,
    NewPool, NewVip,
};
