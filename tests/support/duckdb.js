#!/usr/bin/env node
// SPDX-License-Identifier: GPL-2.0-or-later
// Takes the place of `duckdb -c SQL` where only the library for Node.js is there: a line a row.
const { DuckDBInstance } = require('@duckdb/node-api');

async function main(sql) {
    const connection = await (await DuckDBInstance.create(':memory:')).connect();
    const answer = await connection.runAndReadAll(sql);
    for (const row of answer.getRows()) console.log(row.join('|'));
}

main(process.argv[3]).catch((error) => {
    console.error(String(error));
    process.exitCode = 1;
});
