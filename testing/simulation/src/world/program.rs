//! The copies of the program that run in a world, and the one that only makes a plan.

use std::sync::MutexGuard;

use cloudberth_core::Result;
use cloudberth_manager::plan::Plan;

use super::{Steps, World};
use crate::{
    lock,
    replica::{self, Site},
};

impl World {
    /// Starts both replicas, or starts them again: they know nothing and see everything for the first time.
    pub(crate) async fn restart_program(&mut self) {
        for slot in 0..self.replicas.len() {
            self.restart(slot).await;
        }
    }

    /// Starts both again for a time in which nothing happens.
    pub(crate) async fn restart_calmly(&mut self) {
        self.calm = true;
        self.restart_program().await;
    }

    /// Ends both replicas, without a word.
    pub(crate) async fn stop_program(&mut self) {
        for replica in &mut self.replicas {
            replica.kill(&self.witness).await;
        }
    }

    pub(super) async fn restart(&mut self, slot: usize) {
        let mut replicas = std::mem::take(&mut self.replicas);
        if let Some(replica) = replicas.get_mut(slot) {
            replica.kill(&self.witness).await;
            replica.start(&self.site());
        }
        self.replicas = replicas;
    }

    fn site(&self) -> Site<'_> {
        let Self { api, clouds, clock, random, witness, snare, power, steps, broken, calm, .. } = self;
        let (broken, calm) = (*broken, *calm);
        Site { api, clouds, clock, random, witness, snare, power, steps, broken, calm }
    }

    /// What a program that starts now says it would do.
    pub(crate) async fn dry_run(&self) -> Result<Plan> {
        replica::plan(&self.site()).await
    }

    /// The steps that were sent to clouds since somebody last took them.
    pub(crate) fn steps(&self) -> MutexGuard<'_, Steps> {
        lock(&self.steps)
    }

    /// Starts a successor for each replica that was told to end and has, or must.
    pub(super) async fn replace_retired(&mut self, wait: bool) {
        for slot in 0..self.replicas.len() {
            let Some(replica) = self.replicas.get_mut(slot).filter(|replica| replica.is_retiring()) else {
                continue;
            };
            if wait || !replica.lives() {
                replica.retired(&self.witness).await;
                self.restart(slot).await;
            }
        }
    }
}
