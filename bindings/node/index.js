'use strict';
// index.js - what the package gives to programs. The addon, jitrun.node, does the work; its functions are in *.c.
const addon = require('./jitrun.node');
const { Answer, Reply, parse } = require('./chat.js');
const { Batch, BatchSession } = require('./batch.js');
const { Generation } = require('./generation.js');
const { Metadata, Model } = require('./model.js');
const { Session } = require('./session.js');
const { as, named, optionsOf, sessionOf, text } = require('./options.js');

// The end waits for what computes: it is cancelled, so that the end is near.
process.on('exit', () => addon.leave());

module.exports = {
  Answer, Batch, BatchSession, Generation, Metadata, Model, Reply, Session,
  version: addon.version(),
  devices: () => addon.devices(),
  modelNeeds: async (path, options) => {
    const { session } = optionsOf(options, { session: as.any });
    return addon.needs(text(path, 'path'), session === undefined ? undefined : sessionOf(session, 'session'));
  },
  writeObjects: async (path, options) => addon.objects(text(path, 'path'), named(options)),
  parse: (answer, options) => parse(undefined, answer, options),
  reader: (options) => new Answer(undefined, options),
};
