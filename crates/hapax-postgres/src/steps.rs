//! What the parts of an operation came to, as columns.

use bytes::Bytes;
use hapax_core::{
    OperationId, StoreError, StoredStep, Timestamp,
    step::{StepRow, open_life},
};
use tokio_postgres::Row;

use crate::{
    error::{StatementFailure, after, before, reading},
    row::{Id, column},
    store::Shared,
};

const STEPS: &str = include_str!("sql/steps.sql");

/// The steps of the present life of an operation.
pub(crate) async fn steps(shared: &Shared, id: OperationId) -> Result<Vec<StoredStep>, StoreError> {
    let rows = rows(shared, id).await.map_err(reading)?;
    let Some((life, _)) = rows.first() else { return Ok(Vec::new()) };
    let life = *life;
    let rows = rows.into_iter().map(|(_, row)| row).collect::<Result<_, StoreError>>()?;
    Ok(open_life(life, rows)?)
}

type Found = (Timestamp, Result<StepRow, StoreError>);

async fn rows(shared: &Shared, id: OperationId) -> Result<Vec<Found>, StatementFailure> {
    let wire = shared.reader.wire().await?;
    shared.faults.at("steps.send").map_err(before)?;
    let rows = wire.query(STEPS, &[&Id(id)]).await?;
    shared.faults.at("steps.answer").map_err(after)?;
    rows.iter().map(|row| columns(row, id)).collect()
}

fn columns(row: &Row, id: OperationId) -> Result<Found, StatementFailure> {
    let life = Timestamp::from_micros(column(row, 0)?);
    let Ok(digest) = column::<&[u8]>(row, 8)?.try_into() else {
        let damaged = StoreError::damaged("the stored digest does not have sixteen bytes");
        return Ok((life, Err(damaged)));
    };
    let row = StepRow {
        id,
        life: column(row, 1)?,
        number: column(row, 2)?,
        format: column(row, 3)?,
        name: column(row, 4)?,
        version: column(row, 5)?,
        at: column(row, 6)?,
        result: Bytes::from(column::<Vec<u8>>(row, 7)?),
        digest,
    };
    Ok((life, Ok(row)))
}
