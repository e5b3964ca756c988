import EventLoop
import Glibc
import Provisioning
import Upstream

/// `larder warm [URL]... [--from FILE] [--page URL]...`
///
/// Exit status 0: everything was fetched, and stored as its rules want it. 1: something failed, or the disk did not take something.
func warmCommand(_ arguments: Arguments, _ console: Console) throws(UsageError) -> Int32 {
    if arguments[.user] != nil, arguments[.from] == "-", !isInputTerminal {
        throw UsageError("--user and --from - cannot both read standard input")
    }
    var plan = try warmPlan(arguments)
    do throws(ProxyAddressFailure) {
        let addresses = try warmAddresses(arguments, console)
        if let user = arguments[.user] {
            guard isUserName(user) else {
                throw ProxyAddressFailure("a user name cannot contain colons or control characters")
            }
            do throws(PasswordInputFailure) {
                plan.fields.append(try proxyAuthorization(user: user))
            } catch { throw ProxyAddressFailure(error.message) }
        }
        return warm(plan, addresses, form: warmForm(arguments), console)
    } catch {
        console.error("larder: \(error.message)")
        return ExitStatus.usage
    }
}

private func warm(_ plan: WarmPlan, _ addresses: [SocketAddress], form: WarmReport.Form, _ console: Console) -> Int32 {
    let report = WarmReport(form, console)
    do throws(ClientError) {
        let client = try proxyClient(addresses, plan.fields)
        try blocking { () throws(ClientError) in
            // Find out first whether the proxy answers, before trying a thousand URLs.
            try await client.connect("http://larder/")
            var run = WarmRun(plan, through: client, report: report)
            await run.run()
        }
    } catch {
        console.error("larder: \(textOfProxyError(error))")
        return ExitStatus.failed
    }
    report.finish()
    return report.sum.failed == 0 && report.sum.broken == 0 ? ExitStatus.done : ExitStatus.failed
}

private func warmAddresses(
    _ arguments: Arguments, _ console: Console
) throws(ProxyAddressFailure) -> [SocketAddress] {
    if let named = arguments[.proxy] { return try proxyAddresses(named: named) }
    let reading = readConfiguration(arguments)
    guard let configuration = reading.configuration else {
        for error in reading.errors { console.error("larder: \(error)") }
        throw ProxyAddressFailure("the configuration has errors: name the proxy with --proxy HOST:PORT")
    }
    return try proxyAddresses(of: configuration)
}

private func warmForm(_ arguments: Arguments) -> WarmReport.Form {
    if arguments.has(.json) { return .json }
    return isatty(STDERR_FILENO) == 1 && !arguments.has(.verbose) ? .bar : .lines
}
