//! Listings: pages in order of id, filtered, without outcomes.

use std::collections::BTreeMap;

use hapax_core::{
    OperationId, Scope, StateTag, Store, StoreError, Tenant, apply,
    store::{Filter, Listed, Page, Summary},
};

use super::{
    Backend, Damage,
    scene::{ScenarioCaller, StoreScene, complete, done, enter, operation, stored},
};

/// Pages follow each other in order of id, and together hold every record once.
pub async fn pages_hold_every_record_once<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let summaries = populate(&scene).await;
    for limit in [1, 4, 7, 1000] {
        let mut listed = Vec::new();
        loop {
            let after = listed.last().map(|listed: &Listed| listed.id);
            let page = Page { after, limit };
            let found = scene.store.list(Filter::default(), page).await.unwrap();
            assert!(found.len() <= limit);
            if found.is_empty() {
                break;
            }
            listed.extend(found);
        }
        assert_eq!(readable(listed), summaries.values().cloned().collect::<Vec<_>>());
    }
}

/// Filters by tenant, scope and state hold by themselves and together.
pub async fn filters_hold_by_themselves_and_together<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let summaries = populate(&scene).await;
    let tenants = [None, Some("acme"), Some("other"), Some("nobody")];
    let scopes = [None, Some("a"), Some("b"), Some("nothing")];
    let states = StateTag::ALL.into_iter().map(Some).chain([None]);
    for state in states {
        for tenant in tenants {
            for scope in scopes {
                let filter = Filter {
                    tenant: tenant.map(|name| Tenant::parse(name).unwrap()),
                    scope: scope.map(|name| Scope::parse(name).unwrap()),
                    state,
                };
                let page = Page { after: None, limit: 1000 };
                let listed = scene.store.list(filter, page).await.unwrap();
                let wanted = |summary: &&Summary| {
                    tenant.is_none_or(|name| summary.operation.tenant().as_str() == name)
                        && scope.is_none_or(|name| summary.operation.scope().as_str() == name)
                        && state.is_none_or(|tag| summary.stamp.tag == tag)
                };
                let expected: Vec<_> = summaries.values().filter(wanted).cloned().collect();
                assert_eq!(readable(listed), expected, "{tenant:?} {scope:?} {state:?}");
            }
        }
    }
}

/// A page of a filtered listing starts after the id it names.
pub async fn a_filtered_page_starts_after_the_id_it_names<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let summaries = populate(&scene).await;
    let completed = |summary: &&Summary| summary.stamp.tag == StateTag::Completed;
    let expected: Vec<_> = summaries.values().filter(completed).cloned().collect();
    let filter = Filter { state: Some(StateTag::Completed), ..Filter::default() };
    let page = Page { after: Some(expected[0].operation.id()), limit: 2 };
    assert_eq!(readable(scene.store.list(filter, page).await.unwrap()), expected[1..3]);
}

/// An empty database lists nothing.
pub async fn an_empty_database_lists_nothing<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let page = Page { after: None, limit: 1000 };
    assert!(scene.store.list(Filter::default(), page).await.unwrap().is_empty());
}

/// A record that cannot be read is listed as such, in its place, and the others as they are.
pub async fn what_cannot_be_read_does_not_hide_the_others<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let summaries = populate(&scene).await;
    let ids: Vec<_> = summaries.keys().copied().collect();
    scene.backend.damage(ids[3], Damage::UnknownState).await;
    scene.backend.damage(ids[8], Damage::NewerRow).await;
    let page = Page { after: None, limit: 1000 };
    let listed = scene.store.list(Filter::default(), page).await.unwrap();
    assert_eq!(listed.iter().map(|listed| listed.id).collect::<Vec<_>>(), ids);
    for (at, listed) in listed.into_iter().enumerate() {
        match (at, listed.summary) {
            (3, Err(StoreError::Damaged(_))) | (8, Err(StoreError::TooNew(_))) => {}
            (_, summary) => assert_eq!(summary.unwrap(), summaries[&listed.id]),
        }
    }
}

fn readable(listed: Vec<Listed>) -> Vec<Summary> {
    listed.into_iter().map(|listed| listed.summary.unwrap()).collect()
}

/// Records of two tenants and two scopes, in several states.
async fn populate<B: Backend>(scene: &StoreScene<B>) -> BTreeMap<OperationId, Summary> {
    let mut summaries = BTreeMap::new();
    for (tenant, scope) in [("acme", "a"), ("acme", "b"), ("other", "a")] {
        for key in ["running", "pending", "completed", "doubted", "released"] {
            let caller =
                ScenarioCaller::new(key).of(operation(tenant, scope, key)).keeping(b"kept");
            match key {
                "pending" => _ = enter(&scene.store, &caller.clone().queueing(b"kept")).await,
                "completed" => _ = complete(&scene.store, &caller, "done").await,
                "doubted" => {
                    let fence = enter(&scene.store, &caller).await;
                    done(&scene.store, caller.hears_nothing(fence)).await;
                }
                "released" => {
                    let fence = enter(&scene.store, &caller).await;
                    done(&scene.store, caller.sends_nothing(fence)).await;
                }
                _ => _ = enter(&scene.store, &caller).await,
            }
            let record = stored(&scene.store, caller.id()).await;
            summaries.insert(caller.id(), apply::summary(&record));
        }
    }
    summaries
}
