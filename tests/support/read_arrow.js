// SPDX-License-Identifier: GPL-2.0-or-later
// Reads an Arrow IPC stream from stdin with Apache Arrow for JavaScript, and writes its rows as
// lines of JSON: bytes in base64, without nulls. get() of this library returns times as fractions
// of milliseconds, so the numbers come from the buffers.
const fs = require('fs');
const arrow = require('apache-arrow');

function cell(data, row) {
    if (!data.getValid(row)) return undefined;
    const { type, values } = data;
    if (arrow.DataType.isInt(type) || arrow.DataType.isTimestamp(type)) return String(values[row]);
    const value = new arrow.Vector([data]).get(row);
    if (arrow.DataType.isBinary(type)) return JSON.stringify(Buffer.from(value).toString('base64'));
    return JSON.stringify(value);
}

for (const batch of arrow.RecordBatchReader.from(fs.readFileSync(0))) {
    const lines = [];
    for (let row = 0; row < batch.numRows; row++) {
        const members = [];
        batch.schema.fields.forEach((field, i) => {
            const text = cell(batch.data.children[i], row);
            if (text !== undefined) members.push(`${JSON.stringify(field.name)}:${text}`);
        });
        lines.push(`{${members.join(',')}}\n`);
    }
    fs.writeSync(1, lines.join(''));
}
