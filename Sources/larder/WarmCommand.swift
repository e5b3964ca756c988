import EventLoop
import Glibc

/// `larder warm [URL]... [--from FILE] [--page URL]...`
///
/// Exit status 0: everything was fetched, whether or not the proxy stored it. 1: something failed.
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
    // Find out first whether the proxy answers, before trying a thousand URLs.
    if let reason = ProxyClient(addresses: addresses, fields: []).reasonNotToConnect() {
        console.error("larder: \(reason)")
        return ExitStatus.failed
    }
    let report = WarmReport(form, console)
    do throws(EventLoopError) {
        try WarmRun(plan, through: addresses, report: report).run()
    } catch {
        console.error("larder: \(error)")
        return ExitStatus.failed
    }
    report.finish()
    return report.sum.failed == 0 ? ExitStatus.done : ExitStatus.failed
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
