package import Message

/// Fields that keep a request from being answered on the short path of a hit, as masks that are computed once.
package struct FieldsOfConcern {
    /// Fields about framing, routing, the client, or the use of the cache: any of them does.
    package let always: UInt64
    /// Fields about the connection: they do unless they only say `keep-alive` (`onlyKeepsAlive`).
    package let connection: UInt64
    /// The fields of `always` that do not where a `ShortWay` knows them: the client's credentials for the proxy.
    package let credentials: UInt64

    package init() {
        let always: FieldNameSet = [
            .te, .trailer, .transferEncoding, .upgrade, .contentLength, .expect, .via, .maxForwards,
            .proxyAuthorization,
            .http2Settings, .larderPolicy, .authorization, .range, .ifMatch, .ifUnmodifiedSince, .ifNoneMatch,
            .ifModifiedSince, .ifRange, .cacheControl, .pragma, .xHTTPMethod, .xHTTPMethodOverride, .xMethodOverride,
        ]
        let connection: FieldNameSet = [.connection, .proxyConnection, .keepAlive]
        self.always = always.bits
        self.connection = connection.bits
        let credentials: FieldNameSet = [.proxyAuthorization]
        self.credentials = credentials.bits
    }

    /// Whether every `Connection` and `Proxy-Connection` line says `keep-alive` and nothing else.
    package static func onlyKeepsAlive(_ fields: FieldSection, _ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        for line in fields.lines {
            switch line.name {
            case .connection, .proxyConnection:
                let (start, end) = (Int(line.valueStart), Int(line.valueEnd))
                guard end - start == 10, end <= bytes.count else { return false }
                for index in 0..<10 where unsafe bytes[start + index] | 0x20 != keepAlive[index] { return false }
            default: continue
            }
        }
        return true
    }

    private static let keepAlive = Array("keep-alive".utf8)
}
