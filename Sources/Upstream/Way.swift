package import EventLoop
package import Requesting
import Message
import TLS

/// Whom a client asks.
extension Client {
    public struct Way: Sendable {
        private enum Kind: Sendable {
            case direct(authorities: String?)
            case common(ClientWay.Server, RequestForm.TargetForm, own: [RequestForm.Field])
            case tunnels(ClientWay.Server, own: [RequestForm.Field], authorities: String?)
            case unix(String)
            case engine(EngineSettings)
        }
        private let kind: Kind

        /// The server that the URL of each request names. Names are looked up with the name servers of `/etc/resolv.conf`.
        ///
        /// - Parameter authorities: a PEM file of the authorities that certify servers. Nil: those of the system.
        public static func direct(authorities: String? = nil) -> Way { Way(kind: .direct(authorities: authorities)) }

        /// What a proxy does for https URLs.
        public enum Tunnelling: Sendable {
            /// A Larder gets the URL as it is, and opens the TLS connection to the server itself.
            case none
            /// The proxy opens a tunnel (RFC 9110 §9.3.6), and the client speaks TLS with the server through it.
            ///
            /// - Parameter authorities: a PEM file of the authorities that certify servers. Nil: those of the system.
            case tunnel(authorities: String?)
        }

        /// A proxy that runs: Larder, or another one with `https: .tunnel`.
        ///
        /// - Parameter user: for a proxy that wants one, with the password (RFC 7617).
        public static func proxy(
            host: String, port: UInt16, user: String? = nil, password: String = "", https: Tunnelling = .none
        ) -> Way {
            let own = user.map { [RequestForm.Field("Proxy-Authorization", basic($0, password))] } ?? []
            return proxy(.host(host, port: port), own: own, https)
        }

        private static func proxy(_ server: ClientWay.Server, own: [RequestForm.Field], _ https: Tunnelling) -> Way {
            switch https {
            case .none: Way(kind: .common(server, .absolute, own: own))
            case .tunnel(let authorities): Way(kind: .tunnels(server, own: own, authorities: authorities))
            }
        }

        /// Larder's engine, started in this process with the client and ended with it: routes, next proxies, credentials, cookie jars, retries,
        /// access rules, name servers and the cache of a configuration, without a Larder that runs.
        ///
        /// What the engine itself answers is the error `.refused`. See `docs/upstream.md` for what it does to the process.
        public static func engine(_ settings: EngineSettings = EngineSettings()) -> Way {
            Way(kind: .engine(settings))
        }

        /// The engine with a configuration and no further settings.
        public static func engine(_ configuration: EngineSettings.Configuration) -> Way {
            engine(EngineSettings(configuration))
        }

        /// An HTTP server behind a Unix socket. The host of the URL goes into `Host`, and leads nowhere.
        public static func unixSocket(_ path: String) -> Way { Way(kind: .unix(path)) }

        /// One server for all requests, in origin-form.
        ///
        /// - Parameter own: fields for each request that has none with the same name.
        package static func server(_ addresses: [SocketAddress], own: [RequestForm.Field] = []) -> Way {
            Way(kind: .common(.addresses(addresses), .origin, own: own))
        }

        /// A proxy at addresses that are known.
        package static func proxy(
            _ addresses: [SocketAddress], own: [RequestForm.Field] = [], https: Tunnelling = .none
        ) -> Way { proxy(.addresses(addresses), own: own, https) }

        private static func basic(_ user: String, _ password: String) -> String {
            "Basic " + String(decoding: encodeBase64("\(user):\(password)".utf8), as: UTF8.self)
        }

        func opened() throws(ClientError) -> ClientWay {
            switch kind {
            case .direct(let authorities): .direct(try Way.context(authorities))
            case .common(let server, let form, let own): .common(.init(server: server, form: form, own: own))
            case .tunnels(let server, let own, let authorities):
                .common(.init(server: server, form: .absolute, own: own, tunnelled: try Way.context(authorities)))
            case .unix(let path): .common(.init(server: .addresses([try Way.address(path)]), form: .origin, own: []))
            case .engine(let settings):
                .common(.init(server: .engine(try Engine(settings)), form: .absolute, own: []))
            }
        }

        private static func context(_ authorities: String?) throws(ClientError) -> TLSClientContext {
            do throws(TLSContextError) {
                return try TLSClientContext(authorities: authorities.map { .file($0) } ?? .system)
            } catch { throw .cannotStart("\(error)") }
        }

        private static func address(_ path: String) throws(ClientError) -> SocketAddress {
            do throws(SocketError) {
                return try SocketAddress(unixPath: path)
            } catch { throw .cannotStart("\(path): \(error)") }
        }
    }
}

extension Client {
    /// Larder's engine for a client.
    public struct EngineSettings: Sendable {
        /// Where the configuration comes from. The keys are those of `docs/configuration.md`.
        public enum Configuration: Sendable {
            /// The defaults of Larder. Destinations that are not public are closed.
            case defaults
            case file(String)
            /// - Parameter name: what errors call the text.
            case text(String, name: String = "configuration")
        }

        public var configuration: Configuration
        /// The user as whom the program asks, for the rules of the configuration. No password is asked for. Nil: nobody in particular.
        public var user: String?
        /// The executable `larder`, which evaluates PAC files in a process of its own. Nil: a configuration with a PAC file is an error.
        public var pacEvaluator: String?
        /// Whether `log` of the configuration holds: messages on the standard error and the access log on the standard output of this process.
        /// Otherwise nothing is written there. The level counts for all engines of the process.
        public var logs: Bool

        public init(
            _ configuration: Configuration = .defaults, user: String? = nil, pacEvaluator: String? = nil,
            logs: Bool = false
        ) {
            self.configuration = configuration
            self.user = user
            self.pacEvaluator = pacEvaluator
            self.logs = logs
        }
    }
}
