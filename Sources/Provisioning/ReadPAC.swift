package import EventLoop
import Glibc
import Message
import Routing
package import Server
package import Settings

extension ProvisioningFault {
    /// A problem with the PAC file of a rule of `routes`.
    fileprivate init(pacOf rule: Int, _ message: String) { self.init("routes[\(rule)].pac", message) }
}

/// The PAC files that are in use. Used on the control thread.
package final class PACFiles {
    private let desk = PACDesk()
    private var files: [String: (script: PACScript, file: WatchedFile)] = [:]

    package init() {}

    /// The scripts of a configuration. Those that are in use stay; new ones are read, which blocks. Call `forget` when it is known which
    /// configuration is in force.
    package func scripts(for configuration: Configuration) throws(ProvisioningFault) -> [String: PACScript] {
        let settings = configuration.pac
        var used: [String: PACScript] = [:]
        for (path, rule) in scriptPaths(configuration) where used[path] == nil {
            if let known = files[path] {
                used[path] = known.script
                continue
            }
            // First the stamp, then the text: what is written in between is seen at the next look.
            let file = WatchedFile(path, pause: PACFiles.pause, now: .read())
            let text = try readScript(path, rule)
            do throws(PACFailure) {
                let script = try desk.open(
                    path: path, script: text, timeout: settings.timeout, lifetime: settings.lifetime)
                files[path] = (script, file)
                used[path] = script
            } catch {
                throw ProvisioningFault(pacOf: rule, "\(path) cannot be used: \(error.text)")
            }
        }
        for script in used.values { script.adopt(timeout: settings.timeout, lifetime: settings.lifetime) }
        return used
    }

    /// Forgets the files that are not in use, and ends their processes.
    package func forget(besides used: [String: PACScript]) {
        for (path, entry) in files where used[path] == nil {
            entry.script.endProcess()
            files[path] = nil
        }
    }

    fileprivate static var pause: Duration { .seconds(2) }

    /// Reads again what has changed.
    func look() {
        let now = MonotonicTime.read()
        for path in files.keys where files[path]?.file.hasChanged(at: now) == true {
            do throws(ProvisioningFault) {
                files[path]?.script.replace(by: try readScript(path, 0))
            } catch {
                Diagnostics.warning("\(error.message); the earlier version of the PAC file stays in use")
            }
        }
    }

    /// Ends the thread that asks. Blocks.
    package func close() { desk.close() }
}

/// Looks every two seconds whether a PAC file has changed, and reads it then. Used on the control thread.
package final class PACWatch {
    private let files: PACFiles
    private let loop: EventLoop
    private var timer: Timer?

    package init(_ files: PACFiles, on loop: EventLoop) {
        self.files = files
        self.loop = loop
    }

    package func start() {
        let timer = Timer { [unowned self] in
            files.look()
            schedule()
        }
        self.timer = timer
        schedule()
    }

    package func stop() { if let timer { loop.timers.cancel(timer) } }

    private func schedule() { if let timer { loop.timers.schedule(timer, after: PACFiles.pause) } }
}

/// Tries each PAC file of a configuration with `http://example.com/`, for `larder check`. Blocks.
///
/// - Returns: what is wrong with their answers. What is wrong with the scripts themselves is thrown.
func tryPACFiles(_ configuration: Configuration) throws(ProvisioningFault) -> [ProvisioningFault] {
    var problems: [ProvisioningFault] = []
    var seen: Set<String> = []
    for (path, rule) in scriptPaths(configuration) where seen.insert(path).inserted {
        let text = try readScript(path, rule)
        let evaluator: PACEvaluator
        do throws(PACFailure) {
            evaluator = try PACEvaluator(text, timeout: configuration.pac.timeout)
        } catch {
            throw ProvisioningFault(pacOf: rule, "\(path) cannot be used: \(error.text)")
        }
        let example = Origin(.http, Endpoint(host: "example.com", port: 80))
        do throws(PACFailure) {
            _ = try evaluator.routes(to: example, within: configuration.pac.timeout)
        } catch {
            problems.append(
                ProvisioningFault(pacOf: rule, "\(path) has no route for http://example.com/: \(error.text)"))
        }
    }
    return problems
}

/// The paths of all PAC files, each with a rule that names it.
private func scriptPaths(_ configuration: Configuration) -> [(path: String, rule: Int)] {
    configuration.routes.compactMap { rule in
        guard case .script(let path, _) = rule.ways else { return nil }
        return (path, rule.number)
    }
}

private func readScript(_ path: String, _ rule: Int) throws(ProvisioningFault) -> [UInt8] {
    do throws(FileError) {
        return try readFile(path, bytesMax: PACMessageBuffer.scriptBytesMax)
    } catch {
        throw ProvisioningFault(pacOf: rule, "\(path) cannot be read: \(systemErrorText(error.code))")
    }
}

/// The next proxies of Larder's own environment, if a rule takes them.
func readProxyEnvironment(for rules: [RouteRule]) throws(ProvisioningFault) -> ProxyEnvironment {
    guard let rule = rules.first(where: { $0.ways == .environment }) else { return ProxyEnvironment() }
    do throws(ProxyEnvironment.Fault) {
        return try ProxyEnvironment { name in
            guard let value = unsafe getenv(name) else { return nil }
            return unsafe String(cString: value)
        }
    } catch {
        throw ProvisioningFault("routes[\(rule.number)].via", "the variable \(error.variable) \(error.text)")
    }
}
