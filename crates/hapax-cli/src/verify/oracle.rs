//! Who counts effects, as it was typed.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use hapax_examine::{
    ApiUnderTest, CountByCommand, CountByGet, EffectOracle, HttpAddress, JsonPath, UpstreamConduct,
    UpstreamDouble, WebhookSink, Wire,
};

use super::{count_by_sql::CountBySql, error::VerifyError, headers::from_environment};
use crate::args::VerifySettings;

/// Whoever counts effects of this API, if anybody does.
pub(super) async fn oracle(
    settings: &VerifySettings,
    api: &ApiUnderTest,
    wire: &Wire,
) -> Result<Option<Arc<dyn EffectOracle>>, VerifyError> {
    if let Some(given) = &settings.count {
        return Ok(Some(Arc::new(by_get(given, api, wire)?)));
    }
    if let Some(command) = &settings.count_command {
        let command = command.clone();
        return Ok(Some(Arc::new(CountByCommand { command, pointer: None })));
    }
    if let Some(address) = settings.webhook_sink {
        let sink = WebhookSink::listen(address).await;
        return Ok(Some(Arc::new(sink.map_err(cannot_listen(address))?)));
    }
    if let Some(address) = settings.upstream_double {
        let conduct = UpstreamConduct {
            delay: settings.upstream_delay.map_or(Duration::ZERO, |delay| delay.0),
            drops_one_in: settings.upstream_drop,
            ..UpstreamConduct::default()
        };
        let double = UpstreamDouble::listen(address, conduct).await;
        return Ok(Some(Arc::new(double.map_err(cannot_listen(address))?)));
    }
    let Some(statement) = &settings.count_sql else { return Ok(None) };
    let store = settings.count_store.as_deref().ok_or(VerifyError::NoCountStore)?;
    let store = from_environment(store, "--count-store")?;
    Ok(Some(Arc::new(CountBySql::new(statement, &store)?)))
}

fn cannot_listen(address: SocketAddr) -> impl FnOnce(std::io::Error) -> VerifyError {
    move |source| VerifyError::Listen { address, source }
}

/// `GET /payments?ref={marker} /items/length`; without a pointer, the answer itself is the number or the list.
fn by_get(given: &str, api: &ApiUnderTest, wire: &Wire) -> Result<CountByGet, VerifyError> {
    let wrong = || VerifyError::Count { given: given.to_owned() };
    let words: Vec<_> = given.split_whitespace().collect();
    let (path, pointer) = match words.as_slice() {
        ["GET", path] => (*path, ""),
        ["GET", path, pointer] if pointer.starts_with('/') => (*path, *pointer),
        _ => return Err(wrong()),
    };
    if !path.contains("{marker}") {
        return Err(wrong());
    }
    let (address, path) = if path.starts_with('/') {
        (api.addresses.first().ok_or(VerifyError::NoTarget)?.clone(), path.to_owned())
    } else {
        HttpAddress::parse(path)?
    };
    let mut headers = api.headers.clone();
    headers.extend(api.credentials.main.iter().cloned());
    Ok(CountByGet { wire: wire.clone(), address, path, headers, pointer: JsonPath::new(pointer) })
}
