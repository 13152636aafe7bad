//! Outboxes around others: the methods that make the same call of another outbox, written once.

/// Writes methods of [`OutboxLog`](crate::outbox::OutboxLog) and
/// [`OutboxAdmin`](crate::outbox::OutboxAdmin) that call another outbox, each by its name.
///
/// First comes a macro that is given `self` and the call, and says what is done with it. `ring` and
/// `rung`, which cannot fail, are not among them.
///
/// ```
/// use hapax_core::{forward_outbox, outbox::{OutboxAdmin, OutboxLog, memory}};
///
/// /// An outbox whose calls are counted.
/// struct Counted(memory::Outbox, std::sync::atomic::AtomicU64);
///
/// macro_rules! counted {
///     ($self:ident, $method:ident($($argument:ident),*)) => {{
///         $self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
///         $self.0.$method($($argument),*).await
///     }};
/// }
///
/// impl OutboxLog for Counted {
///     forward_outbox! { counted: register set_paused lease release leave look writers acknowledge park retire }
///
///     fn ring(&self) {
///         self.0.ring();
///     }
///
///     async fn rung(&self) {
///         self.0.rung().await;
///     }
/// }
///
/// impl OutboxAdmin for Counted {
///     forward_outbox! { counted: remove destinations parked replay forget lag }
/// }
/// ```
#[macro_export]
macro_rules! forward_outbox {
    ($call:ident: $($method:ident)+) => {
        $($crate::forward_outbox_method! { $method $call })+
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! forward_outbox_method {
    (register $call:ident) => { $crate::forward_outbox_method! { $call:
        register(destination: $crate::outbox::Destination, start: $crate::outbox::Start) -> ()
    } };
    (set_paused $call:ident) => { $crate::forward_outbox_method! { $call:
        set_paused(name: &str, paused: bool) -> bool
    } };
    (lease $call:ident) => { $crate::forward_outbox_method! { $call:
        lease(lease: $crate::outbox::RelayLease) -> Option<$crate::outbox::Leases>
    } };
    (release $call:ident) => { $crate::forward_outbox_method! { $call:
        release(
            destination: &str,
            owner: $crate::Owner,
            lanes: Vec<($crate::outbox::Lane, $crate::Fence)>
        ) -> ()
    } };
    (leave $call:ident) => { $crate::forward_outbox_method! { $call:
        leave(destination: &str, owner: $crate::Owner) -> ()
    } };
    (look $call:ident) => { $crate::forward_outbox_method! { $call:
        look(destination: &str, look: $crate::outbox::Look) -> Option<$crate::outbox::Seen>
    } };
    (writers $call:ident) => { $crate::forward_outbox_method! { $call:
        writers() -> Vec<$crate::outbox::Writer>
    } };
    (acknowledge $call:ident) => { $crate::forward_outbox_method! { $call:
        acknowledge(destination: &str, progress: $crate::outbox::LaneProgress)
            -> Vec<$crate::outbox::Lane>
    } };
    (park $call:ident) => { $crate::forward_outbox_method! { $call:
        park(park: $crate::outbox::Park) -> bool
    } };
    (retire $call:ident) => { $crate::forward_outbox_method! { $call:
        retire(limit: usize) -> $crate::outbox::Retired
    } };
    (remove $call:ident) => { $crate::forward_outbox_method! { $call:
        remove(name: &str) -> bool
    } };
    (destinations $call:ident) => { $crate::forward_outbox_method! { $call:
        destinations() -> Vec<$crate::outbox::Registered>
    } };
    (parked $call:ident) => { $crate::forward_outbox_method! { $call:
        parked(
            destination: &str,
            selection: $crate::outbox::Selection,
            page: $crate::outbox::ParkedPage
        ) -> Vec<$crate::outbox::Parked>
    } };
    (replay $call:ident) => { $crate::forward_outbox_method! { $call:
        replay(destination: &str, selection: $crate::outbox::Selection) -> usize
    } };
    (forget $call:ident) => { $crate::forward_outbox_method! { $call:
        forget(destination: &str, selection: $crate::outbox::Selection) -> usize
    } };
    (lag $call:ident) => { $crate::forward_outbox_method! { $call:
        lag(destination: &str) -> Option<$crate::outbox::Lag>
    } };
    ($call:ident: $method:ident($($argument:ident: $kind:ty),*) -> $answer:ty) => {
        async fn $method(&self, $($argument: $kind),*) -> Result<$answer, $crate::StoreError> {
            $call!(self, $method($($argument),*))
        }
    };
}
