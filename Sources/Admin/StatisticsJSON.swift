extension Statistics {
    /// The body of `GET /stats`. Names are a promise to scripts: they may be added to, not renamed.
    package func json() -> [UInt8] {
        var writer = JSONWriter()
        writer.object { json in
            json.member("version", version)
            json.member("started_at", rfc3339(secondsSinceEpoch: startedAt))
            json.member("uptime_seconds", uptimeSeconds)
            json.member("draining", isDraining)
            json.key("requests")
            requests.write(to: &json)
            json.key("hit_ratio")
            json.object {
                $0.member("requests", requests.hitRatio)
                $0.member("bytes", bytes.hitRatio)
            }
            writeTraffic(to: &json)
            writeConnections(to: &json)
            json.key("memory")
            memory.write(to: &json)
            json.key("zones")
            json.array { for zone in zones { zone.write(to: &$0) } }
            json.key("store")
            write(store, to: &json)
            json.key("dns")
            names.write(to: &json)
            json.key("errors")
            write(errors, to: &json)
            json.key("refusals")
            write(refusals, to: &json)
            json.key("closes")
            write(closes, to: &json)
            json.key("workers")
            json.array { for worker in workers { worker.write(to: &$0) } }
        }
        return writer.bytes
    }

    private func writeTraffic(to json: inout JSONWriter) {
        json.key("bytes")
        json.object {
            $0.member("to_clients", bytes.toClients)
            $0.member("from_cache", bytes.fromCache)
            $0.member("from_origins", bytes.fromOrigins)
            $0.member("saved", bytes.saved)
        }
        json.key("bandwidth")
        json.object {
            $0.member("to_clients", bandwidth.toClients)
            $0.member("from_origins", bandwidth.fromOrigins)
        }
    }

    private func writeConnections(to json: inout JSONWriter) {
        json.key("clients")
        json.object {
            $0.member("open", clients.open)
            $0.member("accepted", clients.accepted)
        }
        json.key("origins")
        json.object {
            $0.member("open", origins.open)
            $0.member("idle", origins.idle)
            $0.member("opened", origins.opened)
            $0.member("reused", origins.reused)
        }
        json.key("tunnels")
        json.object {
            $0.member("open", tunnels.open)
            $0.member("opened", tunnels.opened)
            $0.member("bytes_from_clients", tunnels.bytesFromClients)
            $0.member("bytes_to_clients", tunnels.bytesToClients)
        }
    }

    private func write(_ counts: [NamedCount], to json: inout JSONWriter) {
        json.object { for entry in counts { $0.member(entry.name, entry.count) } }
    }
}

extension OutcomeCounts {
    fileprivate func write(to json: inout JSONWriter) {
        json.object {
            $0.member("total", total)
            for outcome in RequestOutcome.allCases { $0.member(outcome.name, self[outcome]) }
        }
    }
}

extension Statistics.MemoryUse {
    fileprivate func write(to json: inout JSONWriter) {
        json.object { writeMembers(to: &$0) }
    }

    fileprivate func writeMembers(to json: inout JSONWriter) {
        json.member("budget", budget)
        json.member("used", used)
        json.member("records", records)
        json.member("evictions", evictions)
    }
}

extension Statistics.ZoneRow {
    fileprivate func write(to json: inout JSONWriter) {
        json.object {
            $0.member("name", name)
            memory.writeMembers(to: &$0)
            if let disk {
                $0.key("disk")
                disk.write(to: &$0)
            }
        }
    }
}

extension Statistics.NameResolution {
    fileprivate func write(to json: inout JSONWriter) {
        json.object {
            $0.member("queries", queries)
            $0.member("cached", cached)
            $0.member("failures", failures)
            $0.member("entries", entries)
        }
    }
}

extension Statistics.WorkerRow {
    fileprivate func write(to json: inout JSONWriter) {
        json.object {
            $0.member("number", number)
            $0.member("requests", requests)
            $0.member("clients_open", clientsOpen)
            $0.member("origins_open", originsOpen)
            $0.member("tunnels_open", tunnelsOpen)
        }
    }
}

extension TransferDescription {
    /// The body of `GET /transfers`: `{"transfers": [...]}`.
    package static func json(_ transfers: [TransferDescription]) -> [UInt8] {
        var writer = JSONWriter()
        writer.object {
            $0.key("transfers")
            $0.array { for transfer in transfers { transfer.write(to: &$0) } }
        }
        return writer.bytes
    }

    private func write(to json: inout JSONWriter) {
        json.object {
            $0.member("url", url)
            $0.member("age_milliseconds", ageMilliseconds)
            $0.member("received_bytes", receivedBytes)
            $0.key("expected_bytes")
            if let expectedBytes { $0.integer(expectedBytes) } else { $0.null() }
            $0.member("readers", readers)
            $0.member("stored", isStored)
        }
    }
}

extension PurgeResult {
    private static let notDurable =
        "the disk could not be told, it is off or still being loaded: some may come back; purge again when it is on and loaded"

    /// The body of an answer to `POST /purge`.
    package func json(of request: PurgeRequest) -> [UInt8] {
        var writer = JSONWriter()
        writer.object {
            $0.member("records", records)
            $0.member("bytes", bytes)
            $0.member("soft", request.kind == .soft)
            $0.member("dry_run", request.dryRun)
            if !isDurable { $0.member("error", Self.notDurable) }
        }
        return writer.bytes
    }
}
