import Accounts
package import EventLoop
import Glibc
import Message
package import PACRunner
package import Routing
import Server
package import Settings

extension ProvisioningFault {
    /// A problem with the PAC file of a rule of `routes`.
    fileprivate init(pacOf rule: Int, _ message: String) { self.init("routes[\(rule)].pac", message) }
}

/// Fetches a script, without blocking.
///
/// - Parameters:
///   - time: for all of it.
///   - authorities: a file of those that certify servers; nil: the system's.
///   - then: called once, on any thread.
package typealias PACFetcher =
    @Sendable (
        _ fetch: PACFetch, _ time: Duration, _ authorities: String?,
        _ then: @escaping @Sendable (PACDownload.Answer) -> Void
    ) -> Void

/// The PAC files that are in use. Used on the control thread.
package final class PACFiles {
    private struct Entry {
        let script: PACScript
        let desk: PACDesk
        /// Nil for a script that comes from a URL.
        var file: WatchedFile?
    }
    /// A script that no rule names any more. Requests that began before may still ask it.
    private struct Retired {
        weak var script: PACScript?
        let desk: PACDesk
    }
    private var entries: [PACSource: Entry] = [:]
    private var retired: [Retired] = []
    /// Scripts that `prefetch` got for `scripts`.
    private var prefetched: [PACSource: PACDownload.Answer] = [:]
    private let evaluator: String?
    private let fetch: PACFetcher
    private var fetchTime = Duration.zero
    private var authorities: String?

    /// - Parameter evaluator: the executable `larder`, which becomes the process that evaluates a script. Nil: a configuration with a PAC file
    ///   is refused.
    package init(evaluator: String? = PACEvaluator.ownProgram, fetch: @escaping PACFetcher) {
        self.evaluator = evaluator
        self.fetch = fetch
    }

    /// The scripts of a configuration. Those that are in use stay; new ones are read, which blocks. Call `forget` when it is known which
    /// configuration is in force.
    ///
    /// Scripts of URLs are those that `prefetch` got. Without one, the script fails all questions until `look` has fetched it.
    package func scripts(for configuration: Configuration) throws(ProvisioningFault) -> [PACSource: PACScript] {
        let settings = configuration.pac
        (fetchTime, authorities) = (settings.fetchTimeout, configuration.tls.caFile)
        var used: [PACSource: PACScript] = [:]
        for (source, rule) in scriptSources(configuration) where used[source] == nil {
            let entry: Entry
            if let known = entries[source] { entry = known } else { entry = try open(source, rule, settings) }
            entries[source] = entry
            used[source] = entry.script
        }
        for script in used.values {
            script.adopt(timeout: settings.timeout, lifetime: settings.lifetime)
            script.adopt(refresh: settings.refresh)
        }
        prefetched = [:]
        return used
    }

    private func open(_ source: PACSource, _ rule: Int, _ settings: PACSettings) throws(ProvisioningFault) -> Entry {
        guard let evaluator else {
            throw ProvisioningFault(pacOf: rule, "PAC files are evaluated by the program larder, which is not named")
        }
        let desk = PACDesk(program: evaluator)
        switch source {
        case .file(let path):
            // First the stamp, then the text: what is written in between is seen at the next look.
            let file = WatchedFile(path, pause: PACFiles.pause, now: .read())
            let text = try readScript(path, rule)
            do throws(PACFailure) {
                let script = try desk.open(
                    path: path, script: text, timeout: settings.timeout, lifetime: settings.lifetime)
                return Entry(script: script, desk: desk, file: file)
            } catch {
                desk.close()
                throw ProvisioningFault(pacOf: rule, "\(path) cannot be used: \(error.text)")
            }
        case .url(let url):
            let download = PACDownload(url, refresh: settings.refresh)
            let script = desk.open(download, timeout: settings.timeout, lifetime: settings.lifetime)
            if let answer = prefetched[source], script.beginFetch() != nil {
                let isDone = CountingSemaphore()
                script.fetched(answer) { isDone.signal() }
                isDone.wait()
            }
            return Entry(script: script, desk: desk)
        }
    }

    /// Forgets the files that are not in use, and ends their processes.
    package func forget(besides used: [PACSource: PACScript]) {
        for (source, entry) in entries where used[source] == nil {
            entry.script.endProcess()
            retired.append(Retired(script: entry.script, desk: entry.desk))
            entries[source] = nil
        }
    }

    fileprivate static var pause: Duration { .seconds(2) }

    /// Reads again what has changed, and fetches what is due.
    package func look() {
        let now = MonotonicTime.read()
        for source in entries.keys {
            switch source {
            case .file(let path):
                guard entries[source]?.file?.hasChanged(at: now) == true else { continue }
                do throws(ProvisioningFault) {
                    entries[source]?.script.replace(by: try readScript(path, 0))
                } catch {
                    Diagnostics.warning("\(error.message); the earlier version of the PAC file stays in use")
                }
            case .url:
                guard let script = entries[source]?.script, let due = script.beginFetch() else { continue }
                fetch(due, fetchTime, authorities) { script.fetched($0) }
            }
        }
        for old in retired where old.script == nil { old.desk.close() }
        retired.removeAll { $0.script == nil }
    }

    /// Ends the threads that ask. Blocks.
    package func close() { for desk in entries.values.map(\.desk) + retired.map(\.desk) { desk.close() } }

    // MARK: URLs

    /// Fetches the scripts of URLs that are not in use yet, all at the same time.
    ///
    /// - Parameter then: called once, on any thread, with what came. Hand it to `keep` before `scripts`.
    package func prefetch(
        for configuration: Configuration, then: @escaping @Sendable ([PACSource: PACDownload.Answer]) -> Void
    ) {
        let missing = Set(scriptSources(configuration).map(\.source)).filter { entries[$0] == nil }
        fetchScripts(missing, configuration, fetch, then: then)
    }

    /// Fetches the scripts of URLs that are not in use yet, for `scripts`. Blocks.
    func prefetch(for configuration: Configuration) {
        keep(blocking { prefetch(for: configuration, then: $0) })
    }

    /// Takes what `prefetch` got.
    package func keep(_ answers: [PACSource: PACDownload.Answer]) { prefetched = answers }

    /// Fetches what is in use as soon as possible: the operator has asked for a reload.
    package func expedite() { for entry in entries.values { entry.script.expediteFetch() } }
}

/// Fetches the scripts of URLs at the same time.
///
/// - Parameter then: called once, on any thread.
private func fetchScripts(
    _ sources: Set<PACSource>, _ configuration: Configuration, _ fetch: PACFetcher,
    then: @escaping @Sendable ([PACSource: PACDownload.Answer]) -> Void
) {
    let urls = sources.compactMap { if case .url(let url) = $0 { url } else { nil } }
    guard !urls.isEmpty else { return then([:]) }
    let answers = Locked<[PACSource: PACDownload.Answer]>([:])
    for url in urls {
        fetch(PACFetch(url), configuration.pac.fetchTimeout, configuration.tls.caFile) { answer in
            let all = answers.withLock { answers in
                answers[.url(url)] = answer
                return answers.count == urls.count ? answers : nil
            }
            if let all { then(all) }
        }
    }
}

/// What the scripts of URLs answered.
private typealias PACAnswers = [PACSource: PACDownload.Answer]

/// Waits for the answers.
private func blocking(_ fetch: (@escaping @Sendable (PACAnswers) -> Void) -> Void) -> PACAnswers {
    let isDone = CountingSemaphore()
    let found = Locked<PACAnswers>([:])
    fetch { answers in
        found.withLock { $0 = answers }
        isDone.signal()
    }
    isDone.wait()
    return found.withLock { $0 }
}

/// Looks every two seconds whether a PAC file has changed or is to be fetched, and reads it then. Used on the control thread.
package final class PACWatch {
    private let files: PACFiles
    private let repeating: RepeatingTimer

    package init(_ files: PACFiles, on loop: EventLoop) {
        self.files = files
        repeating = RepeatingTimer(on: loop, every: PACFiles.pause)
    }

    package func start() {
        repeating.start { [unowned self] in files.look() }
    }

    package func stop() { repeating.stop() }

}

/// Tries each PAC file of a configuration with `http://example.com/`, for `larder check`. Blocks.
///
/// What is wrong with their answers, and with scripts of URLs, is a remark: Larder starts without them. What is wrong with files is a fault.
func tryPACFiles(
    _ configuration: Configuration, _ fetch: @escaping PACFetcher, _ preparation: inout Preparation
) throws(ProvisioningFault) {
    let sources = Set(scriptSources(configuration).map(\.source))
    let answers = blocking { fetchScripts(sources, configuration, fetch, then: $0) }
    var seen: Set<PACSource> = []
    for (source, rule) in scriptSources(configuration) where seen.insert(source).inserted {
        let text: [UInt8]
        switch source {
        case .file(let path):
            let script = try preparation.attempt { () throws(ProvisioningFault) in try readScript(path, rule) }
            guard let script else { continue }
            text = script
        case .url:
            guard case .script(let script, _)? = answers[source] else {
                let fault: PACFetchFault = if case .failed(let fault)? = answers[source] { fault } else { .untried }
                preparation.remark(ProvisioningFault(pacOf: rule, "\(source) cannot be fetched: \(fault.text)"))
                continue
            }
            text = script
        }
        let evaluator: PACEvaluator
        do throws(PACFailure) {
            evaluator = try PACEvaluator(text, timeout: configuration.pac.timeout)
        } catch {
            let problem = ProvisioningFault(pacOf: rule, "\(source) cannot be used: \(error.text)")
            if case .url = source { preparation.remark(problem) } else { preparation.add(problem) }
            continue
        }
        let example = Origin(.http, Endpoint(host: "example.com", port: 80))
        do throws(PACFailure) {
            _ = try evaluator.routes(to: example, within: configuration.pac.timeout)
        } catch {
            preparation.remark(
                ProvisioningFault(pacOf: rule, "\(source) has no route for http://example.com/: \(error.text)"))
        }
    }
}

/// All PAC files, each with the rules that name it.
private func scriptSources(_ configuration: Configuration) -> [(source: PACSource, rule: Int)] {
    configuration.routes.compactMap { rule in
        guard case .script(let source, _) = rule.ways else { return nil }
        return (source, rule.number)
    }
}

private func readScript(_ path: String, _ rule: Int) throws(ProvisioningFault) -> [UInt8] {
    do throws(FileError) {
        return try readFile(path, bytesMax: PACMessageBuffer.scriptBytesMax)
    } catch {
        throw ProvisioningFault(pacOf: rule, "\(path) cannot be read: \(systemErrorText(error.code))")
    }
}
