DROP TABLE report_format, report_request, report_file_part, report_file;
