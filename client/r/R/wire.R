# How requests are written and answers are read.

PATIENCE <- 60 # The longest that all waits of a request take together [s].

exchange <- function(url, token, tries, method, path, query, body, key, repeatable) {
  request <- httr2::request(paste0(sub("/+$", "", url), path))
  request <- httr2::req_method(request, method)
  request <- httr2::req_headers(request, Authorization = paste("Bearer", token), Accept = "application/json")
  if (length(query)) request <- do.call(httr2::req_url_query, c(list(request), query))
  if (!is.null(body)) {
    text <- jsonlite::toJSON(body, auto_unbox = TRUE, digits = NA, null = "null")
    request <- httr2::req_body_raw(request, charToRaw(enc2utf8(as.character(text))), "application/json")
  }
  if (!is.null(key)) request <- httr2::req_headers(request, `Idempotency-Key` = key)
  request <- httr2::req_error(request, is_error = function(response) FALSE)
  response <- NULL
  left <- PATIENCE
  for (attempt in seq_len(if (repeatable) tries else 1)) {
    response <- tryCatch(httr2::req_perform(request), error = function(fault) fault)
    failed <- inherits(response, "error")
    busy <- failed || httr2::resp_status(response) %in% c(429, 502, 503, 504)
    wait <- if (!failed) httr2::resp_header(response, "Retry-After")
    wait <- if (is.null(wait)) NA else suppressWarnings(as.numeric(wait))
    if (is.na(wait)) wait <- 0.2 * 2^attempt
    # A quota that is used up asks for hours.
    if (!busy || wait > left || attempt == tries || !repeatable) break
    left <- left - wait
    Sys.sleep(wait)
  }
  if (inherits(response, "error")) {
    refuse("transport", paste0("nothing answers at ", url, ": ", conditionMessage(response)))
  }
  said <- document(response)
  if (httr2::resp_status(response) >= 400) {
    code <- if (is.null(said$code)) "problem" else said$code
    detail <- if (is.null(said$detail)) "" else said$detail
    reasons <- vapply(said$errors, function(one) paste0(one$field, ": ", one$reason), "")
    reasons <- reasons[reasons != detail]
    message <- paste(c(paste0(httr2::resp_status(response), " ", code, ": ", detail), reasons), collapse = "; ")
    refuse(code, message, said)
  }
  said
}

document <- function(response) {
  text <- rawToChar(response$body)
  if (!nzchar(text)) return(NULL)
  Encoding(text) <- "UTF-8"
  tryCatch(jsonlite::fromJSON(text, simplifyVector = FALSE), error = function(fault) NULL)
}

# A refusal: a condition of the class of its code.
refuse <- function(code, message, said = NULL) {
  kinds <- c(paste0("dither_", code), "dither_problem", "error", "condition")
  stop(structure(class = kinds, list(message = message, call = NULL, code = code, said = said)))
}

quoted <- function(part) {
  if (length(part) != 1 || is.na(part)) refuse("invalid_request", "a name or an id in an address must be one text")
  utils::URLencode(as.character(part), reserved = TRUE)
}

random_key <- function() {
  # Of the system's own source: no state of R's generator makes two keys the same.
  paste(openssl::rand_bytes(16), collapse = "")
}

# Numbers as they are written in decimals, of at most 15 digits; all else as it is.
number <- function(value) {
  if (!is.numeric(value)) return(value)
  if (any(!is.finite(value))) refuse("invalid_request", "a number must be finite")
  value
}

given <- function(...) Filter(Negate(is.null), list(...))

as_list <- function(value) if (is.null(value)) NULL else as.list(unname(value))

text <- function(value) {
  if (is.logical(value)) return(tolower(as.character(value)))
  if (is.numeric(value)) return(trimws(format(number(value), digits = 15, scientific = FALSE, drop0trailing = TRUE)))
  as.character(value)
}

# The parameters of a question, as they stand in an address: labels as region:north, lists with commas.
parameters <- function(...) {
  asked <- list(...)
  if (length(asked) && (is.null(names(asked)) || any(names(asked) == ""))) {
    refuse("invalid_request", "name every parameter, as in by = \"region\"")
  }
  asked <- Filter(Negate(is.null), asked)
  lapply(stats::setNames(names(asked), names(asked)), function(name) {
    value <- asked[[name]]
    if (name == "where") {
      return(paste0(names(value), ":", unlist(value), collapse = ","))
    }
    if (name == "between") {
      return(paste0(names(value), ":", paste(value[[1]], collapse = ",")))
    }
    if (name == "standardize") {
      shares <- vapply(value, function(own) paste0(names(own), "=", vapply(own, text, ""), collapse = ","), "")
      return(paste0(names(value), ":", shares, collapse = ";"))
    }
    paste(vapply(value, text, ""), collapse = ",")
  })
}

# A moment as the service reads it: text is sent as it is.
moment <- function(value) {
  if (inherits(value, "POSIXt")) format(value, "%Y-%m-%dT%H:%M:%SZ", tz = "UTC") else value
}

# What a person gives. A local report is made on the device, which R is not.
contribution <- function(row, attributes) {
  # What is missing is left out: the service says of which row and field. The same goes for each measure.
  row <- lapply(Filter(is_there, row), function(field) if (is.factor(field)) as.character(field) else field)
  if (identical(row$trust, "local")) {
    refuse("unsupported", "local reports are made by the SDK for Python or by a browser, not by R")
  }
  value <- row$value
  row$value <- if (length(value) > 1) as_list(number(value)) else plain(value)
  if (length(names(value))) {
    row$value <- NULL
    row$values <- lapply(Filter(is_there, as.list(value)), plain)
  }
  if (is.numeric(row$subject)) row$subject <- text(row$subject)
  row <- lapply(row, number)
  labels <- lapply(Filter(is_there, as.list(attributes)), as.character)
  if (length(labels)) row$attributes <- labels
  row
}

is_there <- function(field) !is.null(field) && !(is.atomic(field) && length(field) == 1 && is.na(field))

plain <- function(value) if (is.factor(value)) as.character(value) else number(value)
