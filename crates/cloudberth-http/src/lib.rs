//! One REST client for every cloud.
