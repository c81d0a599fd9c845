# The client: what a service can be asked, as functions of one object.

#' A client of a Dither service.
#'
#' Its methods have the names and arguments of the SDK for Python: `desk$mean("commute", by = "region")`. A
#' refusal is a condition of the class `dither_problem`, and of `dither_` and its code, as `dither_no_gain`.
#'
#' @param url Address of the service, without `/v1`.
#' @param token Bearer token.
#' @param tries How often a request is sent at most, where the service is busy or does not answer. A release has
#'   an Idempotency-Key, so it is paid once.
#' @return An object whose elements are functions; each answers a tibble.
dither <- function(url, token, tries = 4) {
  stopifnot(is.character(url), length(url) == 1, is.character(token), length(token) == 1)
  call <- function(method, path, query = list(), body = NULL, key = NULL, repeatable = TRUE) {
    exchange(url, token, tries, method, path, query, body, key, repeatable)
  }
  in_study <- function(study, ...) paste0("/v1/studies/", quoted(study), ...)

  read <- function(statistic) {
    force(statistic)
    function(study, ...) {
      answer(call("GET", in_study(study, "/statistics/", statistic), parameters(...)))
    }
  }
  pages <- function(path, query = list(), page_size = 100) {
    items <- list()
    query$limit <- page_size
    repeat {
      page <- call("GET", path, query)
      items <- c(items, page$items)
      if (is.null(page$next_cursor)) return(items)
      query$cursor <- page$next_cursor
    }
  }

  statistics <- c("mean", "sum", "variance", "sd", "difference", "histogram", "shares", "distribution",
                  "quantile", "median", "count", "describe")
  client <- stats::setNames(lapply(statistics, read), statistics)
  pair <- function(statistic, join) {
    function(study, first, second, ...) {
      answer(call("GET", in_study(study, "/statistics/", statistic), c(join(first, second), parameters(...))))
    }
  }
  measures <- function(first, second) list(measures = paste0(first, ",", second))
  client$covariance <- pair("covariance", measures)
  client$correlation <- pair("correlation", measures)
  client$regression <- pair("regression", function(of, on) list(of = of, on = on))
  client$plan <- function(study, statistic = "mean", ...) {
    said <- call("GET", in_study(study, "/plan"), c(list(statistic = statistic), parameters(...)))
    structure(records(said$estimators), said = said)
  }
  client$release <- function(study, statistic = "mean", allow_worse = FALSE, fresh = FALSE, until = NULL,
                             idempotency_key = random_key(), ...) {
    wish <- c(list(statistic = statistic), parameters(...))
    if (!is.null(until)) wish$until <- list(half_width = number(until))
    if (allow_worse) wish$allow_worse <- TRUE
    if (fresh) wish$fresh <- TRUE
    answer(call("POST", in_study(study, "/releases"), body = wish, key = idempotency_key))
  }
  client$find_release <- function(release) answer(call("GET", paste0("/v1/releases/", quoted(release))))
  client$releases <- function(study, page_size = 100) {
    lapply(pages(in_study(study, "/releases"), page_size = page_size), answer)
  }
  client$studies <- function(series = NULL, page_size = 100) {
    records(pages("/v1/studies", if (is.null(series)) list() else list(series = series), page_size))
  }
  client$study <- function(study) records(list(call("GET", in_study(study))))
  client$sessions <- function(study, page_size = 100) {
    records(pages(in_study(study, "/sessions"), page_size = page_size))
  }

  client$create_study <- function(slug, ..., epsilon_min = NULL, epsilon_max = NULL, attributes = NULL,
                                  choices = NULL, trust = NULL) {
    limits <- given(min = number(epsilon_min), max = number(epsilon_max))
    lists <- given(choices = as_list(choices), trust = as_list(trust))
    labels <- if (!is.null(attributes)) list(attributes = lapply(attributes, as_list))
    wish <- c(list(slug = slug), lapply(list(...), number), lists, labels)
    if (length(limits)) wish$epsilon <- limits
    records(list(call("POST", "/v1/studies", body = wish, repeatable = FALSE)))
  }
  client$close_study <- function(study) records(list(call("POST", in_study(study, "/close"))))
  client$retire_study <- function(study) records(list(call("POST", in_study(study, "/retire"))))
  client$archive_study <- function(study, reason) {
    records(list(call("POST", in_study(study, "/archive"), body = list(reason = reason))))
  }
  client$create_token <- function(name, role, studies = NULL) {
    wish <- given(name = name, role = role, studies = as_list(studies))
    records(list(call("POST", "/v1/admin/tokens", body = wish, repeatable = FALSE)))
  }
  client$tokens <- function(page_size = 100) records(pages("/v1/admin/tokens", page_size = page_size))
  client$revoke_token <- function(token) {
    call("DELETE", paste0("/v1/admin/tokens/", quoted(token)))
    invisible(NULL)
  }

  client$contribute <- function(study, subject, value, epsilon = NULL, trust, attributes = NULL) {
    record <- list(subject = subject, value = value, epsilon = epsilon, trust = trust)
    row <- contribution(c(record, as.list(attributes)), names(attributes))
    records(list(call("POST", in_study(study, "/contributions"), body = row)))
  }
  client$contribute_many <- function(study, records, epsilon = NULL, trust = NULL) {
    labels <- setdiff(names(records), c("subject", "value", "epsilon", "trust"))
    rows <- lapply(seq_len(nrow(records)), function(place) {
      row <- lapply(records, function(column) column[[place]])
      if (is.null(row$epsilon)) row["epsilon"] <- list(epsilon)
      if (is.null(row$trust)) row["trust"] <- list(trust)
      contribution(row, labels)
    })
    said <- call("POST", in_study(study, "/contributions/batch"), body = rows)
    structure(records(said$results), said = said)
  }
  client$withdraw <- function(study, subject) {
    call("DELETE", in_study(study, "/contributions/", quoted(subject)))
    invisible(NULL)
  }
  client$budget <- function(subject) call("GET", paste0("/v1/subjects/", quoted(subject), "/budget"))

  structure(client, class = "dither_client", url = url)
}

#' @export
print.dither_client <- function(x, ...) {
  cat("a Dither service at ", attr(x, "url"), ": ", paste(names(x), collapse = ", "), "\n", sep = "")
  invisible(x)
}
