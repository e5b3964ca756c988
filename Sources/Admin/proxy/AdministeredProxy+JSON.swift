import Fleet
import Message
package import Server

extension TransferReport {
    /// The body of `GET /transfers`: `{"transfers": [...]}`.
    ///
    /// - Parameter showsSecrets: whether the client may see the URLs as they are.
    package static func json(_ transfers: [TransferReport], showsSecrets: Bool) -> [UInt8] {
        var writer = JSONWriter()
        writer.object {
            $0.key("transfers")
            $0.array { for transfer in transfers { transfer.write(to: &$0, showsSecrets) } }
        }
        return writer.bytes
    }

    private func write(to json: inout JSONWriter, _ showsSecrets: Bool) {
        json.object {
            $0.member("id", "\(id)")
            $0.member("kind", id.kind == .fetch ? "fetch" : "tunnel")
            $0.key("request_id")
            if let requestID { $0.string(requestID) } else { $0.null() }
            $0.key("tunnel")
            if let tunnelID { $0.string(tunnelID) } else { $0.null() }
            $0.member("method", method)
            $0.member("url", String(decoding: showsSecrets ? uri : URIMasking.masked(uri), as: UTF8.self))
            $0.key("client")
            if let client { $0.string(client) } else { $0.null() }
            $0.member("state", state.rawValue)
            let (seconds, attoseconds) = age.components
            $0.member("age_milliseconds", UInt64(clamping: seconds * 1000 + attoseconds / 1_000_000_000_000_000))
            $0.member("received_bytes", received)
            $0.key("expected_bytes")
            if let expected { $0.integer(expected) } else { $0.null() }
            $0.member("sent_bytes", sent)
            $0.member("readers", readers)
            $0.member("stored", isStored)
        }
    }
}

extension NodeStanding {
    fileprivate func write(to json: inout JSONWriter) {
        json.object {
            $0.member("name", name)
            switch state {
            case .applied: $0.member("state", "applied")
            case .refused(let refusal):
                $0.member("state", "refused")
                $0.member("reason", refusal.rawValue)
            case .unproven(let doubt):
                $0.member("state", "unproven")
                $0.member("reason", doubt.rawValue)
            case .silent(let seconds):
                $0.member("state", "silent")
                $0.key("silent_seconds")
                if let seconds { $0.integer(seconds) } else { $0.null() }
            }
        }
    }
}

extension PurgeResult {
    private static let notDurable =
        """
        the purge could not be written to the disk, which is off or still being loaded: some responses may come back; \
        purge again when the disk is on and loaded
        """

    /// The body of an answer to `POST /purge`.
    package func json(of request: PurgeRequest) -> [UInt8] {
        var writer = JSONWriter()
        writer.object {
            $0.member("records", records)
            $0.member("bytes", bytes)
            $0.member("soft", request.kind == .soft)
            $0.member("dry_run", request.dryRun)
            if let spread {
                $0.key("fleet")
                $0.object {
                    $0.member("applied", spread.applied)
                    $0.member("nodes", spread.nodes.count)
                    $0.key("by_node")
                    $0.array { for node in spread.nodes { node.write(to: &$0) } }
                    if let reason = spread.waitsBecause { $0.member("waits", reason) }
                }
            }
            if !isDurable { $0.member("error", Self.notDurable) }
        }
        return writer.bytes
    }
}
